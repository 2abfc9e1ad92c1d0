package workload_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/workload"
)

// real is an application in memory.
type real struct {
	t    *testing.T
	base string
	send http.RoundTripper
}

func deploy(t *testing.T, a *app.App) *real {
	images := kit.NewRegistry(hotel.Image(nil), social.Image(nil), consul.Image(nil), memcached.Image(nil), mongo.Image(nil), redis.Image(nil), jaeger.Image())
	d := apptest.Deploy(t, a, images)
	transport := d.User().Client().Transport.(*http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return &real{t, fmt.Sprintf("http://%s:%d", a.Frontend.Service, a.Frontend.Port), transport}
}

// ServeHTTP passes a request on to the application.
func (r *real) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	status, header, body := r.ask(req)
	for k, v := range header {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	w.Write(body)
}

func (r *real) ask(req *http.Request) (int, http.Header, []byte) {
	out, err := http.NewRequestWithContext(req.Context(), req.Method, r.base+req.URL.RequestURI(), req.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	out.Header = req.Header.Clone()
	resp, err := r.send.RoundTrip(out)
	if err != nil {
		return http.StatusBadGateway, nil, []byte(err.Error())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return http.StatusBadGateway, nil, []byte(err.Error())
	}
	return resp.StatusCode, resp.Header, body
}

// recorder passes requests on and remembers the first good answer of each path.
type recorder struct {
	*real
	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rec := httptest.NewRecorder()
	r.real.ServeHTTP(rec, req)
	r.mu.Lock()
	if r.answers[req.URL.Path] == nil && rec.Code == http.StatusOK {
		r.answers[req.URL.Path] = rec
	}
	r.mu.Unlock()
	play(w, rec)
}

// replay gives the remembered answers.
func (r *recorder) replay(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	rec := r.answers[req.URL.Path]
	r.mu.Unlock()
	if rec == nil {
		http.NotFound(w, req)
		return
	}
	play(w, rec)
}

func play(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

// echo answers with the request.
func echo(w http.ResponseWriter, req *http.Request) {
	req.ParseForm()
	fmt.Fprintf(w, "%s %s\n", req.Method, req.URL.RequestURI())
	for k, v := range req.Form {
		fmt.Fprintf(w, "%s=%s\n", k, v)
	}
}

func constant(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// editor passes requests on and changes what is in the answers.
func (r *real) editor(old, new string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		status, header, body := r.ask(req)
		if edited := bytes.ReplaceAll(body, []byte(old), []byte(new)); !bytes.Equal(edited, body) {
			status, body = http.StatusOK, edited
			header.Del("Content-Length")
		}
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		w.Write(body)
	}
}

// forgetful says that what is written to a path is done, and does nothing.
func (r *real) forgetful(path, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, path) {
			io.WriteString(w, text)
			return
		}
		r.ServeHTTP(w, req)
	}
}

const patience = time.Minute

// drives counts the loads, so that each has a seed and with it posts of its own.
var drives atomic.Uint64

// drive sends each operation of a mix to a server at least so often, and returns what became of it. No
// step is tried again: all that the applications do is done when they answer.
func drive(t *testing.T, name string, times int64, h http.Handler) *workload.Snapshot {
	t.Helper()
	mix := workload.MixOf(t, name)
	for i := range mix.Operations {
		mix.Operations[i].Weight = 1
		for j := range mix.Operations[i].Then {
			mix.Operations[i].Then[j].Within = 0
		}
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	g, err := workload.New(workload.Spec{Mix: mix, Users: &workload.Users{Count: 6}, Seed: drives.Add(1), Timeout: patience}, workload.Target{BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- g.Run(t.Context()) }()
	defer func() { g.Stop(); <-done }()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s := g.Snapshot()
		w, enough := s.Window("whole"), true
		for _, o := range w.Operations {
			enough = enough && o.Requests >= times
		}
		if enough || time.Now().After(deadline) {
			return s
		}
	}
}

// awaitService waits until every operation works.
func awaitService(t *testing.T, mix string, h http.Handler) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s := drive(t, mix, 1, h)
		if s.Window("whole").Total.Failed == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s.Failures)
		}
	}
}

// The application passes every check of its users, and nothing that only looks like it does. Each
// case says of which operations some must fail; "" is all.
func TestStubsFail(t *testing.T) {
	for _, tt := range []struct {
		app   *app.App
		mixes []string
		stubs func(r *real) map[string]stub
	}{
		{hotel.App(), []string{"hotel-mixed", "hotel-booking"}, func(r *real) map[string]stub {
			return map[string]stub{
				"always yes":              {r.editor("Failed. Please check your username and password. ", "Login successfully!"), "user"},
				"never reserves":          {r.forgetful("/reservation", `{"message":"Reserve successfully!"}`), "reserve"},
				"never lets in":           {r.editor("Login successfully!", "Failed. Please check your username and password. "), "user"},
				"the same hotel for all":  {constant(`{"type":"FeatureCollection","features":[{"type":"Feature","id":"9","properties":{"name":"St. Regis San Francisco","phone_number":"(415) 284-4009"},"geometry":{"type":"Point","coordinates":[-122.338,37.8375]}}]}`), ""},
				"hotels without a number": {r.editor("(415) 284", "(000) 000"), "search"},
			}
		}},
		{social.App(), []string{"social-mixed", "social-compose-post"}, func(r *real) map[string]stub {
			return map[string]stub{
				"always yes":     {r.editor("rpc error: code = Unauthenticated desc = Incorrect username or password", "Success!"), "login"},
				"never posts":    {r.forgetful("/post/compose", "Successfully upload post\n"), "compose-post"},
				"empty home":     {r.forgetful("/home-timeline/read", "[]\n"), "compose-post"},
				"no author":      {r.editor(`"creator":{"user_id":`, `"creator":{"id":`), "compose-post"},
				"no short links": {r.editor("http://short-url/", "http://s/"), "compose-post"},
				"empty":          {constant("[]\n"), ""},
			}
		}},
	} {
		t.Run(tt.app.Name, func(t *testing.T) {
			r := deploy(t, tt.app)
			for _, mix := range tt.mixes {
				t.Run(mix, func(t *testing.T) {
					awaitService(t, mix, r)
					rec := &recorder{real: r, answers: map[string]*httptest.ResponseRecorder{}}
					if s := drive(t, mix, 8, rec); s.Window("whole").Total.Failed != 0 {
						t.Errorf("the application itself fails: %+v", s.Failures)
					}
					stubs := tt.stubs(r)
					stubs["echo"] = stub{http.HandlerFunc(echo), ""}
					stubs["constant"] = stub{constant("ok\n"), ""}
					stubs["recorded"] = stub{http.HandlerFunc(rec.replay), ""}
					for name, stub := range stubs {
						stub.check(t, mix, name)
					}
				})
			}
		})
	}
}

// stub is a server that looks like the application, and the operation by which it is found out.
type stub struct {
	http.Handler
	operation string
}

func (s stub) check(t *testing.T, mix, name string) {
	t.Helper()
	snapshot := drive(t, mix, 8, s)
	window := snapshot.Window("whole")
	for _, o := range window.Operations {
		if o.Failed == 0 && (s.operation == "" && !strings.HasPrefix(o.Operation, "read-") || s.operation == o.Operation) {
			t.Errorf("%s: none of %d %s requests failed: %+v", name, o.Requests, o.Operation, snapshot.Failures)
		}
	}
	if window.Total.Success > 0.98 {
		t.Errorf("%s: %.0f %% of requests succeed", name, 100*window.Total.Success)
	}
}
