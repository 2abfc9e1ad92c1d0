package loopback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a client of a handler.
func serve(h http.HandlerFunc) *http.Client {
	t := &Transport{}
	t.Serve(h)
	return &http.Client{Transport: t}
}

func get(t *testing.T, c *http.Client, ctx context.Context) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/path?q=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(req)
}

func TestRequestAndResponse(t *testing.T) {
	c := serve(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Host, " ", r.Proto, " ", r.Header.Get("X-Sent")))
		w.WriteHeader(http.StatusEarlyHints) // Not the answer yet.
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)        // Too late,
		w.Header().Set("X-Late", "ignored") // and so is this.
		w.Write(bytes.ToUpper(body))
	})
	req, _ := http.NewRequest(http.MethodPost, "http://server/path?q=1", strings.NewReader("body"))
	req.Header.Set("X-Sent", "value")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "BODY" {
		t.Errorf("%q, %v", body, err)
	}
	if res.StatusCode != http.StatusTeapot || res.Status != "418 I'm a teapot" || res.Header.Get("X-Late") != "" {
		t.Errorf("%s, %v", res.Status, res.Header)
	}
	if got := res.Header.Get("X-Seen"); got != "POST /path?q=1 server HTTP/2.0 value" {
		t.Errorf("the handler saw %q", got)
	}
}

func TestEmptyAnswer(t *testing.T) {
	res, err := get(t, serve(func(http.ResponseWriter, *http.Request) {}), t.Context())
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	if b, err := io.ReadAll(res.Body); len(b) != 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	res.Body.Close()
}

// closer is a body that tells when it is closed.
type closer struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

func (c *closer) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func TestRequestBodyIsClosed(t *testing.T) {
	for name, c := range map[string]*http.Client{
		"before the start": {Transport: &Transport{}},
		"unread":           serve(func(http.ResponseWriter, *http.Request) {}),
		"by a panic":       serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	} {
		t.Run(name, func(t *testing.T) {
			body := &closer{Reader: strings.NewReader("x"), closed: make(chan struct{})}
			req, _ := http.NewRequest(http.MethodPost, "http://server/", body)
			if res, err := c.Do(req); err == nil {
				res.Body.Close()
			}
			<-body.closed
		})
	}
	if _, err := get(t, &http.Client{Transport: &Transport{}}, t.Context()); !errors.Is(err, errNotStarted) {
		t.Errorf("%v", err)
	}
}

// TestStream is a watch: the header at once, then each event as it happens, until the client has
// seen enough.
func TestStream(t *testing.T) {
	events, ended := make(chan string), make(chan error, 1)
	c := serve(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		gone := w.(interface{ CloseNotify() <-chan bool }).CloseNotify() // Deprecated, but the API server asks for it.
		for {
			select {
			case e := <-events:
				io.WriteString(w, e)
			case <-r.Context().Done():
				<-gone
				ended <- r.Context().Err()
				return
			}
		}
	})
	res, err := get(t, c, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	for _, e := range []string{"added", "modified"} {
		events <- e
		if n, err := io.ReadFull(res.Body, buf[:len(e)]); err != nil || string(buf[:n]) != e {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	res.Body.Close()
	if err := <-ended; err != context.Canceled {
		t.Errorf("the handler's request ended with %v", err)
	}
	if _, err := res.Body.Read(buf); err != http.ErrBodyReadAfterClose {
		t.Errorf("reading a closed body: %v", err)
	}
}

func TestCancel(t *testing.T) {
	cause := errors.New("leader lost")
	t.Run("before the answer", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := serve(func(w http.ResponseWriter, r *http.Request) {
			cancel(cause)
			<-r.Context().Done()
		})
		if _, err := get(t, c, ctx); !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
	})
	t.Run("while the body is read", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := serve(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "some")
			<-r.Context().Done()
		})
		res, err := get(t, c, ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		cancel(cause)
		if _, err := res.Body.Read(make([]byte, 1)); !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
	})
}

func TestAbort(t *testing.T) {
	if _, err := get(t, serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	res, err := get(t, serve(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half of")
		panic(http.ErrAbortHandler)
	}), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); string(b) != "half of" || err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", b, err)
	}
}

// TestSlowReader shows that a handler waits for its reader, and does not wait for one that left.
func TestSlowReader(t *testing.T) {
	const total = 8 * maxBuffered
	result := make(chan error, 2)
	w := make(chan *response, 2)
	c := serve(func(rw http.ResponseWriter, r *http.Request) {
		w <- rw.(*response)
		chunk := make([]byte, 64<<10)
		for range total / len(chunk) {
			if _, err := rw.Write(chunk); err != nil {
				result <- err
				return
			}
		}
		result <- nil
	})
	res, err := get(t, c, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := <-w
	n := 0
	for buf := make([]byte, 4<<10); ; {
		got, err := res.Body.Read(buf)
		n += got
		r.mu.Lock()
		held := len(r.buffer)
		r.mu.Unlock()
		if held > maxBuffered+64<<10 {
			t.Fatalf("%d bytes wait", held)
		}
		if err == io.EOF {
			break
		}
	}
	if err := <-result; n != total || err != nil {
		t.Errorf("read %d bytes of %d, %v", n, total, err)
	}
	res.Body.Close()

	if res, err = get(t, c, t.Context()); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-result; err == nil {
		t.Error("the handler wrote to nobody")
	}
}

func TestConcurrent(t *testing.T) {
	c := serve(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			text := strings.Repeat(fmt.Sprint(i, " "), 1000)
			res, err := c.Post("http://server/", "text/plain", strings.NewReader(text))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if b, err := io.ReadAll(res.Body); err != nil || string(b) != text {
				t.Errorf("request %d: %d bytes, %v", i, len(b), err)
			}
		})
	}
	wg.Wait()
}

// TestUpgrade takes a connection over, and refuses to.
func TestUpgrade(t *testing.T) {
	c := serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-From: "+r.RemoteAddr+"\r\n\r\n")
		io.Copy(conn, conn)
	})
	send := func(path string) *http.Response {
		t.Helper()
		req, _ := http.NewRequest(http.MethodPost, "http://server"+path, nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := send("/")
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("X-From") != "127.0.0.1:1" {
		t.Fatalf("%s, %v", res.Status, res.Header)
	}
	conn := res.Body.(io.ReadWriteCloser)
	io.WriteString(conn, "hello")
	b := make([]byte, 5)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	conn.Close()
	res = send("/refused")
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusForbidden || string(b) != "no\n" {
		t.Errorf("%s %q, %v", res.Status, b, err)
	}
}

// A cache that is being filled is asked again soon, for as long as the client waits.
func TestComeBack(t *testing.T) {
	asked := 0
	c := serve(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked%3 > 0 || r.URL.Path == "/never" {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	res, err := c.Get("http://x/")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || asked != 3 {
		t.Errorf("%s after %d requests", res.Status, asked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/never", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a client that does not wait any longer is told %v", err)
	}
	// What has a body cannot be sent again.
	asked = 0
	res, err = c.Post("http://x/", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests || asked != 1 {
		t.Errorf("%s after %d requests", res.Status, asked)
	}
}

// TestMarks: a handler can tell requests from inside the process, and those of a trusted transport.
func TestMarks(t *testing.T) {
	var local, trusted bool
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		local, trusted = Local(r.Context()), Trusted(r.Context())
	})
	for _, trust := range []bool{false, true} {
		for _, protocol := range []string{"", "SPDY/3.1"} {
			tr := &Transport{Trusted: trust}
			tr.Serve(h)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if protocol != "" {
				req.Header.Set("Connection", "Upgrade")
				req.Header.Set("Upgrade", protocol)
			}
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if !local || trusted != trust {
				t.Errorf("over %q: local %v, trusted %v, want %v", protocol, local, trusted, trust)
			}
		}
	}
	h.ServeHTTP(nil, (&http.Request{}).WithContext(t.Context()))
	if local || trusted {
		t.Error("a request over a wire looks like one from inside")
	}
}
