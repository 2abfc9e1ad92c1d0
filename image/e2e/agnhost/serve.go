package agnhost

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// serveHTTP returns a part that serves HTTP at an address.
func (p *program) serveHTTP(addr string, h http.Handler) part {
	return p.serve(addr, &http.Server{Handler: h})
}

// serve returns a part that runs an HTTP server, or an HTTPS server if it has a TLS configuration.
func (p *program) serve(addr string, srv *http.Server) part {
	return func(ctx context.Context) error {
		err := p.listenAndServe(ctx, addr, srv)
		if ctx.Err() == nil {
			return p.fatal(err)
		}
		return err
	}
}

// listenAndServe runs a server until ctx ends. The server may be shut down meanwhile: it then still
// waits for that.
func (p *program) listenAndServe(ctx context.Context, addr string, srv *http.Server) error {
	ln, err := p.env.Net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	srv.ErrorLog = p.log
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if srv.TLSConfig != nil {
		err = srv.ServeTLS(ln, "", "")
	} else {
		err = srv.Serve(ln)
	}
	if !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return err
	}
	return idle(ctx)
}

// vanish is what a handler does that has ended the program: a process that is gone does not answer.
func vanish(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// serveUDP returns a part that answers datagrams.
func (p *program) serveUDP(addr string, started func(), answer func(request []byte, from net.Addr) (reply []byte)) part {
	return func(ctx context.Context) error {
		conn, err := p.env.Net.ListenPacket("udp", addr)
		if err != nil {
			return p.fatal(err)
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		started()
		buf := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(buf)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return p.fatal(err)
			}
			if reply := answer(buf[:n], from); reply != nil {
				if _, err := conn.WriteTo(reply, from); err != nil && ctx.Err() == nil {
					return p.fatal(err)
				}
			}
		}
	}
}

// serveTCP returns a part that accepts connections and gives each to f, which closes it.
func (p *program) serveTCP(addr string, f func(ctx context.Context, c net.Conn)) part {
	return func(ctx context.Context) error {
		ln, err := p.env.Net.Listen("tcp", addr)
		if err != nil {
			return p.fatalf("Error from net.Listen(): %s", err)
		}
		stop := context.AfterFunc(ctx, func() { ln.Close() })
		defer stop()
		var open sync.WaitGroup
		defer open.Wait()
		for {
			c, err := ln.Accept()
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return p.fatalf("Error from Accept(): %s", err)
			}
			open.Go(func() {
				stop := context.AfterFunc(ctx, func() { c.Close() })
				defer stop()
				f(ctx, c)
			})
		}
	}
}
