package remote

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

// Patience is how long a load goes on that nobody asks.
const Patience = 2 * time.Minute

// Dial connects to host:port.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Server is a load and what answers for it. It runs once.
type Server struct {
	generator *workload.Generator
	target    workload.Target
	token     string
	asked     chan struct{}
	over      chan struct{} // closed when the last request is answered
}

// NewServer returns a load that is ready to run, for who knows the token.
func NewServer(o Order, token string, dial Dial) (*Server, error) {
	if token == "" {
		return nil, errors.New("there is no token")
	}
	t := workload.Target{BaseURL: o.BaseURL, DialContext: dial}
	g, err := workload.New(o.Spec, t)
	if err != nil {
		return nil, err
	}
	return &Server{
		generator: g, target: t, token: token, asked: make(chan struct{}, 1), over: make(chan struct{}),
	}, nil
}

// Run sends the load, and answers on ln until ctx ends or nobody has asked for [Patience]. What has been counted can be
// asked for after the load was stopped, too.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	srv := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(s.over)
		_ = s.generator.Run(ctx)
	}()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	err := s.attend(ctx, failed)
	cancel(err)
	_ = srv.Close()
	<-s.over
	return err
}

// attend waits until the load is of no use any more.
func (s *Server) attend(ctx context.Context, failed <-chan error) error {
	lonely := time.NewTimer(Patience)
	defer lonely.Stop()
	for {
		select {
		case <-s.asked:
			lonely.Reset(Patience)
		case <-lonely.C:
			return fmt.Errorf("nobody has asked for %v: the run that this load is for is dead", Patience)
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Server) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /snapshot", s.snapshot)
	m.HandleFunc("POST /begin", func(http.ResponseWriter, *http.Request) { s.generator.Begin() })
	m.HandleFunc("POST /end", func(http.ResponseWriter, *http.Request) { s.generator.Stop() })
	m.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		s.generator.Stop()
		select {
		case <-s.over:
			s.snapshot(w, r)
		case <-r.Context().Done():
		}
	})
	m.HandleFunc("POST /surge", s.surge)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(bearer+s.token)) != 1 {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		select {
		case s.asked <- struct{}{}:
		default: // Somebody else has asked at the same time.
		}
		m.ServeHTTP(w, r)
	})
}

func (s *Server) snapshot(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.generator.Snapshot()) // Who has hung up does not want it.
}

// surge sends a load beside the other, until it is over or who asked for it hangs up. What its users get is
// not counted.
func (s *Server) surge(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxOrder))
	if err == nil {
		err = s.sendMore(r.Context(), data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (s *Server) sendMore(ctx context.Context, data []byte) error {
	o, err := Unpack(data)
	if err != nil {
		return err
	}
	if o.Spec.Duration == 0 {
		return errors.New("a surge needs an end")
	}
	g, err := workload.New(o.Spec, s.target)
	if err != nil {
		return err
	}
	return g.Run(ctx)
}
