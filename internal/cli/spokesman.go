package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/server"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// answerTimeout is how long the last answers of a server may take.
	answerTimeout = 5 * time.Second
	// idleConns are how many connections to a worker are kept for further requests.
	idleConns = 16
)

// spokesman speaks for an environment: it has the records, the agents and the verdicts, in this
// process, which lives on whatever becomes of the environment's.
type spokesman struct {
	*http.Transport
	home   *lodging
	worker *server.Worker
	web    *http.Server
	stop   func()
	done   chan struct{}
}

func newSpokesman(l *lodging) *spokesman {
	line := newLine()
	w := &spokesman{
		home: l, worker: server.NewWorker(l), done: make(chan struct{}),
		Transport: &http.Transport{DialContext: line.dial, MaxIdleConnsPerHost: idleConns, DisableCompression: true},
	}
	w.web = &http.Server{
		Handler: w.worker, ErrorLog: logs.ErrorLog(l.log, slog.LevelWarn, "session"),
		ReadHeaderTimeout: answerTimeout,
	}
	go func() { _ = w.web.Serve(line) }()
	w.stop = sync.OnceFunc(func() { go w.end() })
	return w
}

// end cancels what runs, which is graded, ends the environment, and gives the last answers.
func (w *spokesman) end() {
	defer close(w.done)
	w.worker.Close()
	w.home.Close()
	last, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if w.web.Shutdown(last) != nil {
		_ = w.web.Close()
	}
	w.CloseIdleConnections()
}

func (w *spokesman) Stop() { w.stop() }

// Kill ends the environment at once. What ran there is graded as far as its record allows.
func (w *spokesman) Kill() {
	w.home.env.Kill(&session.Death{Why: "the server is ending"})
	w.stop()
}

func (w *spokesman) Done() <-chan struct{} { return w.done }

// Err is nil: it ends when it is told to.
func (w *spokesman) Err() error { return nil }

// line is a listener that only this process can reach.
type line struct {
	conns chan net.Conn
	once  sync.Once
	shut  chan struct{}
}

func newLine() *line { return &line{conns: make(chan net.Conn), shut: make(chan struct{})} }

func (l *line) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.shut:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *line) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.shut:
		return nil, net.ErrClosed
	}
}

func (l *line) Close() error {
	l.once.Do(func() { close(l.shut) })
	return nil
}

func (l *line) Addr() net.Addr { return &net.UnixAddr{Name: "worker", Net: "unix"} }
