package sockshop

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

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// callTimeout is for one service's call to another.
	callTimeout = 5 * time.Second
	// maxBody is how much of a request or an answer is read.
	maxBody = 256 << 10
)

// requestHeader numbers a request, so that one which was sent twice is done once.
const requestHeader = "X-Request-Id"

// flavour is the family of programs that a service of the original belongs to.
type flavour int

const (
	golang flavour = iota
	java
	node
)

// A part is a service.
type part struct {
	name    string
	flavour flavour
	port    int
	memory  int64
	size    int64
	tags    string
	start   func(ctx context.Context, s *server) error
}

// server is a service under way.
type server struct {
	*service.Service
	part
	version string
	mux     *http.ServeMux
	client  *http.Client
	counted func(r *http.Request, took time.Duration) // counts requests under further names; may be nil
}

// main runs a part as a program.
func (p part) main(version string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		s, err := service.New(ctx, env, service.Config{Name: p.name, Log: p.log(env)})
		if err != nil {
			return err
		}
		defer s.Close()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // What runs beside the server ends before the rest is closed.
		srv := &server{
			Service: s, part: p, version: version, mux: http.NewServeMux(), client: s.HTTPClient(callTimeout),
		}
		if err := p.start(ctx, srv); err != nil {
			return s.Fatal(ctx, "cannot start "+p.name, err)
		}
		srv.mux.Handle("GET /metrics", s.Metrics())
		s.Log.Info(p.name+" started", slog.String("version", version), slog.Int("port", p.port))
		return s.ServeHTTP(ctx, srv.timed(), fmt.Sprintf(":%d", p.port))
	}
}

// log is how a service logs: those in Go as key=value pairs on standard error.
func (p part) log(env *kit.Env) *slog.Logger {
	if p.flavour != golang {
		return nil
	}
	return slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Time("ts", a.Value.Time().UTC())
			}
			return a
		},
	}))
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

// object is one of JSON.
type object = map[string]any

// handle serves requests of a kind, with the status that a success has. A request without a body has the zero value
// of In.
func handle[In, Out any](
	s *server, pattern string, cost time.Duration, code int, f func(r *http.Request, in In) (Out, error),
) {
	s.HandleFunc(s.mux, pattern, path(pattern), cost, func(w http.ResponseWriter, r *http.Request) {
		var in In
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &in)
		}
		if err != nil {
			s.fail(w, r, refuse(http.StatusBadRequest, "the body cannot be read: %v", err))
			return
		}
		out, err := f(r, in)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		answer(w, code, out)
	})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// fail answers with an error, in the form that the family of the service has.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusInternalServerError
	if no, ok := errors.AsType[*refusal](err); ok {
		code = no.code
		s.Log.InfoContext(r.Context(), "Refused", slog.String("path", r.URL.Path), slog.String("err", no.msg))
	} else if !errors.Is(r.Context().Err(), context.Canceled) {
		s.Log.ErrorContext(r.Context(), "Failed", slog.String("path", r.URL.Path), slog.Any("err", err))
	}
	text := http.StatusText(code)
	if s.flavour == java {
		answer(w, code, object{
			"timestamp": time.Now().UnixMilli(), "status": code, "error": text, "message": err.Error(),
			"path": r.URL.Path,
		})
		return
	}
	answer(w, code, object{"error": err.Error(), "status_code": code, "status_text": text})
}

// call asks another service, which answers with JSON, and returns the status. Whatever services ask of each other may
// be asked twice: see requestHeader.
func call[Out any](ctx context.Context, s *server, method, url string, in any) (out Out, code int, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, 0, err
		}
	}
	resp, err := s.send(ctx, method, url, body, nil)
	if err != nil {
		return out, 0, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return out, resp.StatusCode, fmt.Errorf("%s %s: %w", method, url, err)
	case resp.StatusCode >= http.StatusInternalServerError:
		return out, resp.StatusCode, fmt.Errorf("%s %s: %s: %.200s", method, url, resp.Status, data)
	case resp.StatusCode >= http.StatusBadRequest:
		return out, resp.StatusCode, refuse(resp.StatusCode, "%s %s: %.200s", method, url, data)
	case len(bytes.TrimSpace(data)) == 0:
		return out, resp.StatusCode, nil
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, resp.StatusCode, fmt.Errorf("%s %s: %w", method, url, err)
	}
	return out, resp.StatusCode, nil
}

// numbered is a context whose calls have the number of a request.
func numbered(r *http.Request) context.Context {
	n := r.Header.Get(requestHeader)
	if n == "" || len(n) > 64 {
		n = bson.NewObjectID().Hex()
	}
	return context.WithValue(r.Context(), numberKey{}, n)
}

type numberKey struct{}

// number is the number of a request, or one of its own.
func number(ctx context.Context) string {
	if n, ok := ctx.Value(numberKey{}).(string); ok {
		return n
	}
	return bson.NewObjectID().Hex()
}

// send sends a request, again if nobody has answered it. The time for all of it is callTimeout.
func (s *server) send(
	ctx context.Context, method, url string, body []byte, header http.Header,
) (*http.Response, error) {
	id := number(ctx)
	return service.Insist(ctx, s.client, callTimeout, func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		maps.Copy(req.Header, header)
		req.Header.Set(requestHeader, id)
		// As in the original: a Service chooses a pod for each connection, so new pods get their part.
		req.Close = true
		if len(body) > 0 {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, nil
	})
}

// mongo opens the service's database. It waits for nobody: without its store a service answers with errors.
func (s *server) mongo(host, db string) (*mongo.Database, error) {
	c, err := s.Mongo("mongodb://"+host+":27017",
		options.Client().SetBSONOptions(&options.BSONOptions{DefaultDocumentMap: true}))
	if err != nil {
		return nil, err
	}
	return c.Database(db), nil
}
