package box

import (
	"context"
	"io"
	"net"
	"os"
)

// dial connects the shell to something in the cluster's network.
func (h *host) dial(d *dialRequest, socket *os.File) {
	carrier, err := unixConn(socket)
	if err != nil {
		return
	}
	defer carrier.Close()
	s := newStream(carrier)
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { carrier.Close() })()
	conn := make(chan net.Conn, 1)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer cancel() // A shell that gives up ends everything, the dial too.
		if _, err := s.in.Peek(1); err == nil {
			sendOn(s, <-conn)
		}
	}()
	defer func() { carrier.Close(); <-sent }()
	defer close(conn)
	c, err := h.box.dial(ctx, d.Network, d.Address)
	if err != nil {
		_ = s.sendAnswer(&dialAnswer{Failure: newFailure(err)})
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	s.network = d.Network
	conn <- c
	if s.sendAnswer(&dialAnswer{Local: addressText(c.LocalAddr()), Remote: addressText(c.RemoteAddr())}) != nil {
		return
	}
	_, err = io.Copy(onlyWriter{s}, onlyReader{c})
	if s.closeWith(err) == nil {
		<-sent
	}
}

// sendOn carries what the shell sends to a connection, until the shell is done with it altogether.
func sendOn(s *stream, c net.Conn) {
	if c == nil {
		return
	}
	if _, err := io.Copy(onlyWriter{c}, onlyReader{s}); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, s.Conn)
}

// onlyReader and onlyWriter hide how else a connection could be copied: it must go in frames.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

func addressText(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
