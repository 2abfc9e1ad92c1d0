package kube

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// errClosed is that the cloud was closed.
var errClosed = errors.New("the cloud is closed")

// lingering is how long who was dialled may take to hang up after this side has.
const lingering = 2 * time.Second

// conn is a connection through a tunnel. A pipe is between it and the tunnel's streams, which know no deadlines.
type conn struct {
	net.Conn // this end of the pipe
	to       name
	failure  atomic.Pointer[error] // why it ended, if the other side has said so
}

// connect has a tunnel carry a connection to a port.
func (p *pool) connect(t *tunnel, port int, to name) (*conn, error) {
	t.number++
	header := http.Header{}
	header.Set(v1.PortHeader, strconv.Itoa(port))
	header.Set(v1.PortForwardRequestIDHeader, strconv.Itoa(t.number))
	header.Set(v1.StreamType, v1.StreamTypeError)
	failures, err := t.CreateStream(header)
	if err != nil {
		return nil, err
	}
	_ = failures.Close() // for writing
	header.Set(v1.StreamType, v1.StreamTypeData)
	data, err := t.CreateStream(header)
	if err != nil {
		t.RemoveStreams(failures)
		return nil, err
	}
	near, far := net.Pipe()
	c := &conn{Conn: near, to: to}
	go p.carry(c, t, far, data, failures)
	return c, nil
}

// carry copies between a pipe and the streams of a connection until both directions have ended.
func (p *pool) carry(c *conn, t *tunnel, far net.Conn, data, failures httpstream.Stream) {
	told := make(chan error, 1)
	go func() {
		text, err := io.ReadAll(failures)
		if len(text) > 0 {
			err = refusal(string(text))
		}
		told <- err
	}()
	var sent sync.WaitGroup
	var linger *time.Timer
	gone := make(chan struct{})
	sent.Go(func() {
		_, _ = io.Copy(data, far) // It ends when this side is closed, or the other is gone.
		_ = data.Close()          // for writing
		linger = time.AfterFunc(lingering, func() {
			close(gone)
			_ = data.Reset()
		})
	})
	_, err := io.Copy(far, data)
	// The other side has ended, or nobody reads what it sends. What is still on its way is let go, or it would keep
	// what comes behind it from being told.
	_ = data.Reset()
	select {
	case failed := <-told:
		if failed != nil {
			c.failure.Store(&failed)
			err = failed
		}
	case <-t.CloseChan():
		failed := error(syscall.ECONNRESET)
		c.failure.Store(&failed)
		err = failed
	case <-gone:
		err = os.ErrDeadlineExceeded
	}
	_ = far.Close()
	sent.Wait()
	linger.Stop()
	t.RemoveStreams(data, failures)
	if err != nil {
		p.drop(t)
		return
	}
	p.give(t)
}

// refusal is the error that a kubelet's message is about.
func refusal(text string) error {
	if strings.Contains(text, "connection refused") {
		return syscall.ECONNREFUSED
	}
	return errors.New(strings.TrimSpace(text))
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain("read", err)
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain("write", err)
}

// explain says why a connection has ended, if that is known.
func (c *conn) explain(op string, err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	if failure := c.failure.Load(); failure != nil {
		return &net.OpError{Op: op, Net: c.to.Network(), Addr: c.to, Err: *failure}
	}
	if errors.Is(err, io.ErrClosedPipe) {
		return &net.OpError{Op: op, Net: c.to.Network(), Addr: c.to, Err: net.ErrClosed}
	}
	return err
}

func (c *conn) RemoteAddr() net.Addr { return c.to }
