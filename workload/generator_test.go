package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// log notes when requests arrive.
type log struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func (l *log) add(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%v %s %s %s", time.Since(l.start), r.Method, r.URL, body))
}

// The requests that arrive are the planned ones, at the planned times.
func TestSendsThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{start: time.Now()}
		target := serve(t, func(w http.ResponseWriter, r *http.Request) { l.add(r) })
		m := MixOf(t, "social-mixed")
		for i := range m.Operations { // The server says nothing, so nobody expects anything.
			o := &m.Operations[i]
			o.Expect, o.Recall, o.Then = Expect{}, "", nil
			o.Vars = slices.DeleteFunc(o.Vars, func(f Field) bool { return f.Name == "look" })
			for j, f := range o.Vars {
				if strings.Contains(f.Value, ".look") || strings.Contains(f.Value, ".kept") || strings.Contains(f.Value, ".post") {
					o.Vars[j].Value = "0"
				}
			}
		}
		s := Spec{Mix: m, Arrivals: &Arrivals{Rate: Constant(50)}, Seed: 9, Duration: 20 * time.Second}
		g := mustNew(t, s, target)
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		planned, _ := s.Plan(1e6)
		var want []string
		for _, p := range planned {
			want = append(want, fmt.Sprintf("%v %s %s %s", p.At, p.Method, p.Path, p.Body))
		}
		// What users write is another text each time, of the same length.
		text := regexp.MustCompile(`[A-Za-z0-9]{18,}`)
		for _, list := range [][]string{want, l.lines} {
			for i := range list {
				list[i] = text.ReplaceAllStringFunc(list[i], func(s string) string { return fmt.Sprintf("<%d>", len(s)) })
			}
			slices.Sort(list)
		}
		if !slices.Equal(l.lines, want) {
			t.Errorf("%d requests, %d planned", len(l.lines), len(want))
		}
		snap := g.Snapshot()
		if total := snap.Window("whole").Total; total.Requests != int64(len(want)) || total.Success != 1 || total.Max != 0 || snap.Lag.Max != 0 {
			t.Errorf("%+v", snap)
		}
	})
}

// A server that stalls for a second delays every request wanted meanwhile, and all of them show it:
// there is no coordinated omission, even over a single connection.
func TestStallIsSeenInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		target := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if d := time.Since(start); d >= 5*time.Second && d < 6*time.Second {
				time.Sleep(6*time.Second - d)
			}
		})
		s := Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Process: Even, Rate: Constant(100)}, Duration: 10*time.Second + 1}
		g := mustNew(t, s, target)
		g.Run(t.Context())
		i := g.Snapshot().Window("whole").Total
		// Of 1000 requests, 100 were delayed, by 1 s to 0 s evenly.
		if i.Requests != 1000 || i.Failed != 0 || i.P50 != 0 || !near(i.P95.Seconds(), 0.5, 0.02) || !near(i.P99.Seconds(), 0.9, 0.02) || !near(i.Max.Seconds(), 1, 0.01) {
			t.Errorf("%+v", i)
		}
	})
}

func TestNothingIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := serve(t, func(w http.ResponseWriter, r *http.Request) { time.Sleep(950 * time.Millisecond) })
		s := Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Process: Even, Rate: Constant(10)}, Duration: 10 * time.Second, MaxInFlight: 4}
		g := mustNew(t, s, target)
		g.Run(t.Context())
		snap := g.Snapshot()
		i := snap.Window("whole").Total
		// Each second, 10 requests are wanted and 4 are sent.
		if snap.Wanted != 99 || i.Requests != 99 || i.Dropped != i.Failed || i.Requests-i.Dropped != 40 {
			t.Errorf("wanted %d, %+v", snap.Wanted, i)
		}
		if f := snap.Failures[0]; f.Class != Dropped || f.Count != i.Dropped || f.Sample != "not sent: 4 requests were under way" {
			t.Errorf("%+v", f)
		}
	})
}

func TestFailures(t *testing.T) {
	dialError := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code); io.WriteString(w, body) }
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		dial    func(context.Context, string, string) (net.Conn, error)
		expect  Expect
		class   Class
		sample  string
	}{
		{name: "ok", handler: status(200, "")},
		{name: "redirect", handler: status(302, "")},
		{name: "5xx", handler: status(500, "rpc error: code = Unavailable\n"), class: HTTP5xx, sample: "500 Internal Server Error: rpc error: code = Unavailable"},
		{name: "4xx", handler: status(404, ""), class: HTTP4xx, sample: "404 Not Found: (empty)"},
		{name: "expected 404", handler: status(404, ""), expect: Expect{Status: []int{404}}},
		{name: "unexpected 200", handler: status(200, "x"), expect: Expect{Status: []int{404}}, class: Status, sample: "200 OK: x"},
		{name: "body", handler: status(200, `{"hotels": []}`), expect: Expect{Body: `"id"`}, class: Body, sample: `the body does not match "\"id\"": {"hotels": []}`},
		{name: "right body", handler: status(200, strings.Repeat("x", 5000)+"end"), expect: Expect{Body: `end$`}},
		{name: "timeout", handler: func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, class: Timeout, sample: "context deadline exceeded"},
		{name: "slow body", handler: func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); <-r.Context().Done() }, class: Timeout, sample: "context deadline exceeded"},
		{name: "reset", handler: func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, class: Reset, sample: "EOF"},
		{name: "cut off", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, class: Reset, sample: "unexpected EOF"},
		{name: "refused", dial: dialError(syscall.ECONNREFUSED), class: Refused, sample: "connection refused"},
		{name: "reset while dialling", dial: dialError(syscall.ECONNRESET), class: Reset, sample: "connection reset by peer"},
		{name: "dns", dial: dialError(&net.DNSError{Err: "no such host", Name: "app", IsNotFound: true}), class: DNS, sample: "lookup app: no such host"},
		{name: "lost", dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, class: Timeout, sample: "context deadline exceeded"},
		{name: "other", dial: dialError(errors.New("no route")), class: Other, sample: "no route"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := Target{BaseURL: "http://app", DialContext: tt.dial}
				if tt.dial == nil {
					target = serve(t, tt.handler)
				}
				s := Spec{Mix: one(Operation{Call: Call{Method: "POST", Expect: tt.expect}}), Arrivals: &Arrivals{Process: Even, Rate: Constant(1)}, Duration: 1500 * time.Millisecond, Timeout: 3 * time.Second}
				g := mustNew(t, s, target)
				if err := g.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				snap := g.Snapshot()
				if n := snap.Window("whole").Total.Requests; n != 1 {
					t.Fatalf("%d requests", n)
				}
				if tt.class == "" {
					if len(snap.Failures) != 0 {
						t.Errorf("%+v", snap.Failures)
					}
					return
				}
				if len(snap.Failures) != 1 || snap.Failures[0].Class != tt.class || !strings.Contains(snap.Failures[0].Sample, tt.sample) {
					t.Errorf("%+v", snap.Failures)
				}
				if tt.class == Timeout && snap.Elapsed != 4*time.Second {
					t.Errorf("it took %v", snap.Elapsed)
				}
			})
		})
	}
}

// Windows forget: an outage is seen in the last 10 s, then only in the last minute, then in the whole.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		target := serve(t, func(w http.ResponseWriter, r *http.Request) {
			d := time.Since(start)
			if d >= 30*time.Second && d < 40*time.Second {
				w.WriteHeader(503)
				return
			}
			time.Sleep(time.Millisecond)
			if d >= 60*time.Second {
				time.Sleep(9 * time.Millisecond)
			}
		})
		g := mustNew(t, Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Process: Even, Rate: Constant(10)}}, target)
		done := make(chan error)
		go func() { done <- g.Run(t.Context()) }()
		at := func(d time.Duration) func(string) SLI {
			time.Sleep(time.Until(start.Add(d)))
			s := g.Snapshot()
			return func(w string) SLI { x := s.Window(w); return x.Operation("op") }
		}
		check := func(when time.Duration, window string, got SLI, requests int64, success float64, p50 time.Duration) {
			t.Helper()
			if got.Requests != requests || !near(got.Success, success, 1e-9) || !near(got.P50.Seconds(), p50.Seconds(), 0.01) || !near(got.Rate, 10, 0.05) {
				t.Errorf("%v, %s: %+v", when, window, got)
			}
		}
		almost := 990 * time.Millisecond // Just before a second ends, windows are full.
		ms := time.Millisecond
		d := 29*time.Second + almost
		s := at(d)
		check(d, "10s", s("10s"), 100, 1, ms)
		check(d, "whole", s("whole"), 299, 1, ms)
		d = 39*time.Second + almost
		s = at(d)
		check(d, "10s", s("10s"), 100, 0, 0)
		check(d, "1m", s("1m"), 399, 299.0/399, ms)
		d = 49*time.Second + almost
		s = at(d)
		check(d, "10s", s("10s"), 100, 1, ms)
		check(d, "1m", s("1m"), 499, 399.0/499, ms)
		d = 119*time.Second + almost
		s = at(d)
		check(d, "10s", s("10s"), 100, 1, 10*ms)
		check(d, "1m", s("1m"), 600, 1, 10*ms)
		check(d, "whole", s("whole"), 1199, 1099.0/1199, 10*ms)
		g.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		check(d, "10s after the end", g.Snapshot().Window("10s").Total, 100, 1, 10*ms)
	})
}

func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := serve(t, func(w http.ResponseWriter, r *http.Request) { time.Sleep(2 * time.Second) })
		g := mustNew(t, Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Process: Even, Rate: Constant(10)}}, target)
		done := make(chan error)
		go func() { done <- g.Run(t.Context()) }()
		time.Sleep(10*time.Second + time.Millisecond)
		g.Stop()
		g.Stop()
		synctest.Wait()
		if n := g.Snapshot().InFlight; n != 20 {
			t.Errorf("%d requests under way", n)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		s := g.Snapshot()
		if i := s.Window("whole").Total; i.Requests != 100 || i.Failed != 0 || s.InFlight != 0 || s.Elapsed != 12*time.Second {
			t.Errorf("%+v after %v", i, s.Elapsed)
		}
		if err := g.Run(t.Context()); err == nil {
			t.Error("it ran twice")
		}
	})
}

// What is abandoned is no failure of the application.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		g := mustNew(t, Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Process: Even, Rate: Constant(10)}}, target)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := g.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if s := g.Snapshot(); s.Elapsed != 2*time.Second || s.InFlight != 0 || s.Window("whole").Total.Requests != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		first := map[string]time.Duration{}
		var under, most atomic.Int64
		target := serve(t, func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			user := r.URL.Query().Get("user")
			mu.Lock()
			if _, ok := first[user]; !ok {
				first[user] = time.Since(start)
			} else if c, err := r.Cookie("user"); err != nil || c.Value != user {
				t.Errorf("user %s has the cookie %v", user, c)
			}
			mu.Unlock()
			http.SetCookie(w, &http.Cookie{Name: "user", Value: user})
			time.Sleep(500 * time.Millisecond)
		})
		s := Spec{
			Mix:      one(Operation{Call: Call{Query: Fields{{"user", "{{.user}}"}}}}),
			Users:    &Users{Count: 10, Think: Think{Min: time.Second, Max: 2 * time.Second}},
			Duration: time.Minute,
		}
		g := mustNew(t, s, target)
		g.Run(t.Context())
		for user, at := range first {
			if at != 0 {
				t.Errorf("user %s came after %v", user, at)
			}
		}
		// A user needs 2 s for a request, on average.
		i := g.Snapshot().Window("whole").Total
		if len(first) != 10 || most.Load() > 10 || !near(float64(i.Requests), 10*60/2, 0.1) || i.Failed != 0 || !near(i.P50.Seconds(), 0.5, 0.01) {
			t.Errorf("%d users, %d at once, %+v", len(first), most.Load(), i)
		}
	})
}

func TestReplayRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{start: time.Now()}
		target := serve(t, func(w http.ResponseWriter, r *http.Request) { l.add(r) })
		mix := &Mix{Name: "m", Operations: []Operation{{Name: "a", Weight: 1, Call: Call{Path: "/a"}}, {Name: "b", Weight: 0, Call: Call{Path: "/b"}}}}
		s := Spec{Mix: mix, Arrivals: &Arrivals{Replay: &Replay{Trace: "time,operation\n5,b\n6,a\n8.5,b\n9.5,\n"}}, Duration: 7 * time.Second}
		mustNew(t, s, target).Run(t.Context())
		if got, want := strings.Join(l.lines, ","), "0s GET /b ,1s GET /a ,3.5s GET /b ,4.5s GET /a ,6s GET /b "; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestTargets(t *testing.T) {
	for _, u := range []string{"", "frontend:5000", "ftp://x", "http://"} {
		if _, err := New(Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Rate: Constant(1)}}, Target{BaseURL: u}); err == nil {
			t.Errorf("%q is a target", u)
		}
	}
}

// TestHeld: a load that changes is at its highest rate until it begins, and then it is as if it had just
// been started.
func TestHeld(t *testing.T) {
	run := func(held bool) (times []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			start, begun := time.Now(), time.Now()
			var before int
			target := serve(t, func(http.ResponseWriter, *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if begun.IsZero() {
					before++
				} else {
					times = append(times, time.Since(begun))
				}
			})
			s := Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Rate: parseRate(t, "[{constant: 5, for: 10s}, {ramp: {from: 5, to: 40}, for: 20s}, {constant: 10}]")}, Seed: 3, Held: held}
			g := mustNew(t, s, target)
			if held {
				begun = time.Time{}
			}
			go g.Run(t.Context())
			if held {
				time.Sleep(20 * time.Second)
				mu.Lock()
				if !near(float64(before), 20*40, 0.15) {
					t.Errorf("%d requests in the %v before it began", before, time.Since(start))
				}
				begun = time.Now()
				mu.Unlock()
				g.Begin()
				g.Begin()
			}
			time.Sleep(time.Minute)
			g.Stop()
			synctest.Wait()
			if w := g.Snapshot().Window("5s"); !near(w.Wanted, 10, 0.5) || w.Total.Rate < 0.9*w.Wanted {
				t.Errorf("at the end %+v", w)
			}
		})
		return times
	}
	free, held := run(false), run(true)
	if len(free) == 0 || !slices.Equal(free, held) {
		t.Errorf("%d requests, %d of a load that was held", len(free), len(held))
	}
}

// TestWanted: what is wanted is known though nobody answers.
func TestWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		target := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			if time.Since(start) > 10*time.Second {
				<-r.Context().Done()
			}
		})
		g := mustNew(t, Spec{Mix: one(Operation{}), Arrivals: &Arrivals{Process: Even, Rate: Constant(20)}}, target)
		go g.Run(t.Context())
		time.Sleep(9900 * time.Millisecond)
		if w := g.Snapshot().Window("5s"); !near(w.Wanted, 20, 0.03) || !near(w.Total.Rate, 20, 0.03) {
			t.Errorf("while it answers: %+v", w)
		}
		time.Sleep(4 * time.Second)
		if w := g.Snapshot().Window("5s"); !near(w.Wanted, 20, 0.03) || w.Total.Rate > 10 {
			t.Errorf("when it does not: %+v", w)
		}
		g.Stop()
	})
}

// Users who become more are as many as at first until the load begins, and then one more at a time.
func TestUsersRise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		first := map[string]time.Duration{}
		target := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if user := r.URL.Query().Get("user"); first[user] == 0 {
				first[user] = time.Since(start) + 1
			}
		})
		g := mustNew(t, Spec{
			Mix:   one(Operation{Call: Call{Query: Fields{{"user", "{{.user}}"}}}}),
			Users: &Users{Count: 5, Think: Think{Min: time.Second, Max: time.Second}, From: 2, Spawn: 0.5},
			Held:  true, Duration: time.Minute,
		}, target)
		go func() {
			time.Sleep(10 * time.Second)
			g.Begin()
		}()
		g.Run(t.Context())
		want := map[string]time.Duration{"0": 1, "1": 1, "2": 12*time.Second + 1, "3": 14*time.Second + 1, "4": 16*time.Second + 1}
		if d := cmp.Diff(want, first); d != "" {
			t.Error(d)
		}
	})
}
