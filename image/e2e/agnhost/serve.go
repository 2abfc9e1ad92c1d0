package agnhost

import (
	"context"
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

// listenAndServe runs a server until ctx ends.
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
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// maxDatagram is more than any test puts into one.
const maxDatagram = 8192

// serveUDP returns a part that answers datagrams.
func (p *program) serveUDP(addr string, started func(), answer func(request []byte, from net.Addr) []byte) part {
	return func(ctx context.Context) error {
		conn, err := p.env.Net.ListenPacket("udp", addr)
		if err != nil {
			return p.fatal(err)
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		started()
		buf := make([]byte, maxDatagram)
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
			return p.fatal(err)
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
				return p.fatal(err)
			}
			open.Go(func() {
				stop := context.AfterFunc(ctx, func() { c.Close() })
				defer stop()
				f(ctx, c)
			})
		}
	}
}
