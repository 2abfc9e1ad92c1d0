package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/aci/mcptool"
	"github.com/aiopslab/aiopslab/internal/logs"
)

const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

// Path is where the server is, over HTTP.
const Path = "/mcp"

// Stdio serves a client over a pair of streams, until the client closes its end or ctx ends.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	defer context.AfterFunc(ctx, s.end)()
	client, err := s.server.Connect(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: stay{out}}, nil)
	if err != nil {
		return err
	}
	left := make(chan error, 1)
	go func() { left <- client.Wait() }()
	select {
	case <-ctx.Done():
		_ = client.Close()
		err = <-left
	case err = <-left:
	}
	if s.asker != nil {
		s.asker.left(client)
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) || deafened(err) {
		return nil
	}
	return err
}

// deafened tells whether writing failed because the client reads no more.
func deafened(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}

// stay is a stream that is not ours to close.
type stay struct{ io.Writer }

func (stay) Close() error { return nil }

// HTTP serves clients by streamable HTTP at Path, until ctx ends. With a token, a client needs it as
// its bearer token.
func (s *Server) HTTP(ctx context.Context, l net.Listener, token string) error {
	mux := http.NewServeMux()
	mux.Handle(Path, s.handler(token))
	h := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout,
		ErrorLog: logs.ErrorLog(s.log, slog.LevelWarn, "mcp"),
	}
	defer context.AfterFunc(ctx, s.end)()
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	closed := make(chan struct{})
	go func() { // Else streams that clients hold open would have the shutdown wait.
		defer close(closed)
		for c := range s.server.Sessions() {
			_ = c.Close()
		}
	}()
	if h.Shutdown(grace) != nil {
		_ = h.Close()
	}
	<-served
	select {
	case <-closed:
	case <-grace.Done():
	}
	return nil
}

// handler serves clients that have the token.
func (s *Server) handler(token string) http.Handler {
	return mcptool.Guard(token, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server }, nil))
}
