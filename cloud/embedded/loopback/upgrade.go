package loopback

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/aiopslab/aiopslab/internal/logs"
)

// upgrade sends a request for another protocol, such as exec's. Whoever speaks that takes the
// connection over, so the request gets one: a pipe, with HTTP/1.1 at both ends.
func (t *Transport) upgrade(h http.Handler, req *http.Request) (*http.Response, error) {
	client, server := net.Pipe()
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr, r.TLS = remoteAddr, req.TLS
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), mark{}, t.Trusted)))
		}),
		ErrorLog: logs.ErrorLog(t.Log, slog.LevelDebug, "kube-apiserver"), // Mostly a client has hung up.
	}
	_ = s.Serve(&single{conn: server}) // It ends when there is no second connection; the first lives on.
	pipe := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return client, nil },
		DisableKeepAlives: true, DisableCompression: true,
	}
	resp, err := pipe.RoundTrip(req)
	if err != nil {
		client.Close()
	}
	return resp, err
}

// single is a listener with one connection.
type single struct{ conn net.Conn }

func (s *single) Accept() (net.Conn, error) {
	if s.conn == nil {
		return nil, io.EOF
	}
	c := s.conn
	s.conn = nil
	return c, nil
}

func (s *single) Close() error { return nil }

func (s *single) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
