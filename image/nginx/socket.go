package nginx

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// socket is an open port. Which servers answer there may change while it is open.
type socket struct {
	addr   string
	tls    bool
	ln     net.Listener
	srv    *http.Server
	listen atomic.Pointer[listen]
	done   chan struct{}
}

func newSocket(l *listen, ln net.Listener) *socket {
	s := &socket{addr: l.addr, tls: l.tls, ln: ln, done: make(chan struct{})}
	s.listen.Store(l)
	return s
}

// connectionKey is under which a connection's number is found in a request's context.
type connectionKey struct{}

// serve starts to answer connections.
func (s *socket) serve(ctx context.Context, in *instance) {
	l := s.listen.Load()
	s.srv = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { in.handle(s, w, r) }),
		ErrorLog:          log.New(io.Discard, "", 0), // What clients do wrong is not worth a line.
		IdleTimeout:       l.first.keepalive,
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         in.counters.track,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, in.counters.connections.Add(1))
		},
	}
	if l.first.keepalive == 0 {
		s.srv.SetKeepAlivesEnabled(false)
	}
	go func() {
		defer close(s.done)
		if !s.tls {
			_ = s.srv.Serve(s.ln) // It ends when the socket is closed, and that is all it can tell.
			return
		}
		s.srv.TLSConfig = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			l := s.listen.Load()
			if cert := l.find(hello.ServerName).certificate; cert != nil {
				return cert, nil
			}
			return l.first.certificate, nil
		}}
		s.srv.Protocols = new(http.Protocols)
		s.srv.Protocols.SetHTTP1(true)
		s.srv.Protocols.SetHTTP2(l.http2)
		_ = s.srv.ServeTLS(s.ln, "", "")
	}()
}

// shutdown stops to accept connections and waits for those there are.
func (s *socket) shutdown(ctx context.Context) {
	if s.srv.Shutdown(ctx) != nil {
		s.srv.Close()
	}
	<-s.done
}

func (s *socket) close() {
	s.srv.Close()
	<-s.done
}

// handle answers a request and logs it.
func (in *instance) handle(s *socket, w http.ResponseWriter, r *http.Request) {
	in.counters.requests.Add(1)
	l := s.listen.Load()
	x := &exchange{
		in: in, gen: in.current.Load(), listen: l, server: l.find(hostName(r.Host)),
		r: r, started: time.Now(), set: map[string]string{},
	}
	x.connection, _ = r.Context().Value(connectionKey{}).(int64)
	x.w = &writer{ResponseWriter: w, x: x}
	defer func() {
		reason := recover()
		if x.w.status == 0 || reason == http.ErrAbortHandler && r.Context().Err() != nil {
			x.w.status = statusClientClosed
		}
		x.logAccess()
		switch reason.(type) {
		case nil:
		case abandoned:
			panic(http.ErrAbortHandler)
		default:
			panic(reason)
		}
	}()
	x.run()
}
