package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/aiopslab/aiopslab/internal/logs"
)

// Workers start workers.
type Workers interface {
	// Start starts one, and returns when it can be asked. It lives until it is stopped, or dies. Log is
	// for what it has to tell, and has the id of what it is for.
	Start(ctx context.Context, log *slog.Logger) (WorkerProcess, error)
}

// WorkerProcess is a worker as its front sees it. Its methods are safe for concurrent use.
type WorkerProcess interface {
	http.RoundTripper // to its API; the host of a URL does not matter
	// Stop tells it to end: to cancel and grade what it runs, and to clean up. It does not wait.
	Stop()
	// Kill ends it at once.
	Kill()
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Err says why it has ended, if nobody told it to.
	Err() error
}

// deathTimeout is how long it may take until it is known why a worker does not answer.
const deathTimeout = 5 * time.Second

// lease is a worker that is in use, and its place among those there may be.
type lease struct {
	WorkerProcess
	proxy *httputil.ReverseProxy
}

// lease starts a worker. The place must be released in the end.
func (f *Front) lease(ctx context.Context, log *slog.Logger) (*lease, error) {
	p, err := f.Workers.Start(ctx, log)
	if err != nil {
		return nil, fail(http.StatusBadGateway, "start a worker: %v", err)
	}
	l := &lease{WorkerProcess: p}
	l.proxy = &httputil.ReverseProxy{
		Transport: p, FlushInterval: -1, ErrorLog: logs.ErrorLog(log, slog.LevelDebug, "session"),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "worker", "worker"
			r.Out.Header.Del("Authorization")
		},
	}
	return l, nil
}

// pass hands a request on to the worker. If the worker does not answer, it returns why.
func (l *lease) pass(w http.ResponseWriter, r *http.Request) (err error) {
	proxy := *l.proxy
	proxy.ErrorHandler = func(_ http.ResponseWriter, _ *http.Request, e error) { err = e }
	proxy.ServeHTTP(w, r)
	if err != nil && r.Context().Err() == nil {
		return fail(http.StatusBadGateway, "%s", l.why(err))
	}
	return err
}

// ask sends a request of the front's own. An answer that is an error is returned as one.
func (l *lease) ask(ctx context.Context, method, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://worker"+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	res, err := l.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fail(http.StatusBadGateway, "%s", l.why(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return fail(http.StatusBadGateway, "%s", l.why(err))
	}
	if res.StatusCode >= 300 {
		var m Mistake
		if json.Unmarshal(answer, &m) != nil || m.Detail == "" {
			m.Detail = res.Status
		}
		return &failure{res.StatusCode, m.Detail}
	}
	return json.Unmarshal(answer, into)
}

// why explains why the worker did not answer: mostly it has died.
func (l *lease) why(err error) string {
	select {
	case <-l.Done():
		if e := l.Err(); e != nil {
			err = e
		}
		return fmt.Sprintf("the process of the environment has ended: %v", err)
	case <-time.After(deathTimeout):
		return fmt.Sprintf("the process of the environment does not answer: %v", err)
	}
}
