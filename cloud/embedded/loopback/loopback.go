// Package loopback lets the API server's own clients, the controllers, the scheduler and the nodes,
// call its handler in the same process: no sockets, no TLS, no HTTP/2 framing.
//
//	t := &loopback.Transport{}
//	client, err := kubernetes.NewForConfig(t.Config())
//	t.Serve(server.Handler)
package loopback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"
)

// maxBuffered is how many bytes of a response may wait for their reader.
const maxBuffered = 1 << 20

// remoteAddr is where handlers see requests come from.
const remoteAddr = "127.0.0.1:1"

// While kube-apiserver fills a cache, it asks those who want to read from it to come back in a second.
// Those in its own process come back sooner, or the start of a cluster would wait for them.
const (
	comeBackAfter  = 5 * time.Millisecond
	comeBackWithin = 10 * time.Second
)

var errNotStarted = errors.New("the API server has not started")

// Transport is an http.RoundTripper that calls a handler. It is safe for concurrent use.
type Transport struct {
	// Trusted marks the requests, so that the handler can tell them from those of others; see
	// [Trusted]. Set it before the first request.
	Trusted bool
	// Log is told of errors of what is served over another protocol, at level debug. It may be nil.
	Log *slog.Logger

	mu      sync.RWMutex
	handler http.Handler
}

type mark struct{}

// Local reports whether a request, by its context, comes from inside the process. A request that comes over a wire
// cannot look like one.
func Local(ctx context.Context) bool { return ctx.Value(mark{}) != nil }

// Trusted reports whether a request comes by a transport that is Trusted.
func Trusted(ctx context.Context) bool { return ctx.Value(mark{}) == true }

// Config returns a client configuration over the transport with a token of its own.
func (t *Transport) Config() *rest.Config {
	return &rest.Config{
		Host:          "http://kubernetes.default.svc",
		BearerToken:   uuid.NewString(),
		Transport:     t,
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		// There is no line to save.
		DisableCompression: true,
	}
}

// Serve sets the handler. Until then requests fail.
func (t *Transport) Serve(h http.Handler) {
	t.mu.Lock()
	t.handler = h
	t.mu.Unlock()
}

// RoundTrip runs the handler in a goroutine and returns once it has answered with a header. The
// body streams: closing it ends the handler's request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.RLock()
	h := t.handler
	t.mu.RUnlock()
	if h == nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errNotStarted
	}
	if req.Header.Get("Upgrade") != "" {
		return t.upgrade(h, req)
	}
	for begin := time.Now(); ; {
		res, err := t.call(h, req)
		if err != nil || !toComeBack(req, res) || time.Since(begin) > comeBackWithin {
			return res, err
		}
		res.Body.Close()
		select {
		case <-time.After(comeBackAfter):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

// toComeBack reports whether a request is to be made again, and can be.
func toComeBack(req *http.Request, res *http.Response) bool {
	return res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" &&
		(req.Body == nil || req.Body == http.NoBody)
}

func (t *Transport) call(h http.Handler, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), mark{}, t.Trusted))
	in := req.Clone(ctx)
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	in.RequestURI, in.RemoteAddr = req.URL.RequestURI(), remoteAddr
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &response{req: req, header: http.Header{}, answered: make(chan struct{}), ctx: ctx, cancel: cancel}
	w.cond.L = &w.mu
	stop := context.AfterFunc(ctx, func() { w.fail(context.Cause(ctx)) })
	go func() {
		defer func() {
			r := recover()
			stop()
			in.Body.Close()
			switch {
			case r != nil:
				w.fail(io.ErrUnexpectedEOF) // What a client sees of an aborted handler.
			case ctx.Err() != nil:
				w.fail(context.Cause(ctx)) // Whatever the handler made of it.
			default:
				w.finish()
			}
			cancel()
		}()
		h.ServeHTTP(w, in)
	}()
	<-w.answered
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.result == nil {
		return nil, w.err
	}
	return w.result, nil
}

// response is a handler's ResponseWriter and the client's body in one: a bounded buffer.
type response struct {
	req    *http.Request
	header http.Header
	ctx    context.Context
	cancel context.CancelFunc

	answered chan struct{} // closed once there is a result or a failure
	once     sync.Once

	mu     sync.Mutex
	cond   sync.Cond
	result *http.Response
	buffer []byte
	err    error // after the buffer: io.EOF or what went wrong
	closed bool  // the client lost interest
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if status >= 100 && status < 200 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
}

func (w *response) writeHeader(status int) {
	w.once.Do(func() {
		w.result = &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
			Proto: "HTTP/2.0", ProtoMajor: 2,
			Header: w.header.Clone(), Body: w.body(), ContentLength: -1, Request: w.req,
		}
		close(w.answered)
	})
}

func (w *response) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	for len(w.buffer) >= maxBuffered && w.err == nil && !w.closed {
		w.cond.Wait()
	}
	switch {
	case w.closed:
		return 0, http.ErrHandlerTimeout
	case w.err != nil:
		return 0, w.err
	}
	w.buffer = append(w.buffer, b...)
	w.cond.Broadcast()
	return len(b), nil
}

// Flush has nothing to do: what is written can be read.
func (w *response) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
}

// CloseNotify is deprecated, but the API server takes a writer without it for one that cannot
// stream.
func (w *response) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

// The API server bounds slow clients by deadlines. There is no line that could be slow here.
func (w *response) SetReadDeadline(time.Time) error  { return nil }
func (w *response) SetWriteDeadline(time.Time) error { return nil }

func (w *response) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	if w.err == nil {
		w.err = io.EOF
	}
	w.cond.Broadcast()
}

func (w *response) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.once.Do(func() { close(w.answered) })
	w.cond.Broadcast()
}

func (w *response) body() io.ReadCloser { return (*responseBody)(w) }

// responseBody is the client's side of a response.
type responseBody response

func (b *responseBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.buffer) == 0 && b.err == nil && !b.closed {
		b.cond.Wait()
	}
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(b.buffer) == 0:
		return 0, b.err
	}
	n := copy(p, b.buffer)
	if b.buffer = b.buffer[n:]; len(b.buffer) == 0 {
		b.buffer = nil
	}
	b.cond.Broadcast()
	return n, nil
}

func (b *responseBody) Close() error {
	b.mu.Lock()
	b.closed, b.buffer = true, nil
	b.cond.Broadcast()
	b.mu.Unlock()
	b.cancel()
	return nil
}
