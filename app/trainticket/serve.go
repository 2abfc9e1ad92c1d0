package trainticket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// callTimeout is for one service's call to another.
	callTimeout = 5 * time.Second
	// maxBody is how much of a request or an answer is read.
	maxBody = 256 << 10
	// cost is the CPU time of a request.
	cost = 250 * time.Microsecond
)

// Headers by which the gateway tells the services who asks, and which request it is: one that was sent twice has one
// number.
const (
	accountHeader = "X-Account-Id"
	requestHeader = "X-Request-Id"
)

// ports are where the services listen.
var ports = map[string]int{
	"ts-gateway-service": 18888, "ts-auth-service": 12340, "ts-user-service": 12342, "ts-station-service": 12345,
	"ts-train-service": 14567, "ts-route-service": 11178, "ts-price-service": 16579, "ts-travel-service": 12346,
	"ts-seat-service": 18898, "ts-order-service": 12031, "ts-preserve-service": 14568, "ts-cancel-service": 18885,
	"ts-inside-payment-service": 18673, "ts-payment-service": 19001, "ts-notification-service": 17853,
}

// response is the form of all answers. Status is 1 if what was asked for was done.
type response[T any] struct {
	Status int    `json:"status"`
	Msg    string `json:"msg"`
	Data   T      `json:"data"`
}

// refusal is an answer to somebody who asks for what cannot be done. Nothing is wrong with the service then.
type refusal struct {
	code int
	msg  string
}

func (r *refusal) Error() string { return r.msg }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// server is a service under way.
type server struct {
	*service.Service
	mux    *http.ServeMux
	client *http.Client
	db     *mongo.Database // nil if it has no store
}

// A part is a service: its name, what its store has at first, and what it serves.
type part struct {
	name  string
	db    string // of its store; none without one
	seed  func() map[string][]any
	start func(ctx context.Context, s *server) error
}

// main runs a part as a program.
func (p part) main(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: p.name})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // What runs beside the server ends before the rest is closed.
	srv := &server{Service: s, mux: http.NewServeMux(), client: s.HTTPClient(callTimeout)}
	if p.db != "" {
		var seed map[string][]any
		if p.seed != nil {
			seed = p.seed()
		}
		if srv.db, err = s.OpenDatabase(ctx, env.Getenv("MONGO_URI"), p.db, seed); err != nil {
			return s.Fatal(ctx, "cannot open the database "+p.db, err)
		}
	}
	if err := p.start(ctx, srv); err != nil {
		return s.Fatal(ctx, "cannot start "+p.name, err)
	}
	s.Log.Info(p.name+" started", slog.Int("port", ports[p.name]))
	return s.ServeHTTP(ctx, srv.mux, fmt.Sprintf(":%d", ports[p.name]))
}

// handle serves requests of a kind. A request without a body has the zero value of In.
func handle[In, Out any](s *server, pattern, name string, f func(r *http.Request, in In) (Out, error)) {
	s.HandleFunc(s.mux, pattern, name, cost, func(w http.ResponseWriter, r *http.Request) {
		var in In
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &in)
		}
		if err != nil {
			answer(w, http.StatusBadRequest, response[any]{Msg: "the body cannot be read: " + err.Error()})
			return
		}
		out, err := f(r, in)
		no, refused := errors.AsType[*refusal](err)
		switch {
		case refused:
			s.Log.InfoContext(r.Context(), name+" refused", slog.String("reason", no.msg))
			answer(w, no.code, response[any]{Msg: no.msg})
		case err != nil:
			if !errors.Is(r.Context().Err(), context.Canceled) {
				s.Log.ErrorContext(r.Context(), name+" failed", slog.Any("error", err))
			}
			answer(w, http.StatusInternalServerError, response[any]{Msg: err.Error()})
		default:
			answer(w, http.StatusOK, response[Out]{1, "Success", out})
		}
	})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// own refuses to serve somebody who is not the owner of an account.
func own(r *http.Request, account string) error {
	if who := r.Header.Get(accountHeader); who != account || who == "" {
		return refuse(http.StatusForbidden, "account %q is not yours", account)
	}
	return nil
}

// call asks another service. What it refuses is an error that is handed on. All that services ask of each other may be
// asked twice.
func call[Out any](ctx context.Context, s *server, to, method, path string, in any) (out Out, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, err
		}
	}
	resp, err := send(ctx, s, to, method, path, body, nil)
	if err != nil {
		return out, fmt.Errorf("%s %s%s: %w", method, to, path, err)
	}
	defer resp.Body.Close()
	var r response[Out]
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&r); err != nil {
		return out, fmt.Errorf("%s %s%s: %s: %w", method, to, path, resp.Status, err)
	}
	switch {
	case resp.StatusCode >= http.StatusInternalServerError:
		return out, fmt.Errorf("%s %s%s: %s: %s", method, to, path, resp.Status, r.Msg)
	case resp.StatusCode >= http.StatusBadRequest:
		return out, &refusal{resp.StatusCode, r.Msg}
	}
	return r.Data, nil
}

// send sends a request, again if nobody has answered it.
func send(
	ctx context.Context, s *server, to, method, path string, body []byte, header http.Header,
) (*http.Response, error) {
	url := fmt.Sprintf("http://%s:%d%s", to, ports[to], path)
	return service.Insist(ctx, s.client, callTimeout, func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		maps.Copy(req.Header, header)
		if len(body) > 0 {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, nil
	})
}
