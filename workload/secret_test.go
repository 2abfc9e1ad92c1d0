package workload

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// noticeBoard is a mix whose users read back what they wrote.
func noticeBoard() *Mix {
	return one(Operation{
		Vars: Fields{{"id", "{{int 0 99}}"}, {"token", "{{text 32}}"}, {"pin", "{{number 18}}"}},
		Call: Call{
			Path: "/write", Form: Fields{{"id", "{{.id}}"}, {"text", "{{.token}}"}, {"pin", "{{.pin}}"}},
			Expect: Expect{Body: "^ok$"},
		},
		Then: []Then{{Call: Call{Path: "/read", Query: Fields{{"id", "{{.id}}"}}, Expect: Expect{Body: "^{{.token}} {{.pin}}$"}}}},
	})
}

// stubBoard is a server that keeps what is written, or forges what will be read.
type stubBoard struct {
	mu     sync.Mutex
	forged bool
	pages  map[string]string // by id
	ids    []string
	texts  []string
}

func (b *stubBoard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := r.FormValue("id")
	switch r.URL.Path {
	case "/write":
		b.ids, b.texts = append(b.ids, id), append(b.texts, r.FormValue("text"))
		if !b.forged {
			b.pages[id] = r.FormValue("text") + " " + r.FormValue("pin")
		}
		fmt.Fprint(w, "ok")
	case "/read":
		fmt.Fprint(w, b.pages[id])
	}
}

// TestForgedTokens: a stub that knows the mix, the seed and this program loses what is written to it, and
// answers what users will look for, as it is to be drawn. It is no good: what users write is drawn from
// a secret. All else is as the seed says.
func TestForgedTokens(t *testing.T) {
	var seen [2]stubBoard
	for i, forged := range []bool{false, true} {
		b := &seen[i]
		b.forged, b.pages = forged, map[string]string{}
		spec := Spec{Mix: noticeBoard(), Arrivals: &Arrivals{Rate: Constant(5), Process: Even}, Seed: 1, Duration: 10 * time.Second}
		if forged {
			planned, err := spec.Plan(1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range planned {
				form, err := url.ParseQuery(p.Body)
				if err != nil {
					t.Fatal(err)
				}
				b.pages[form.Get("id")] = form.Get("text") + " " + form.Get("pin")
			}
		}
		synctest.Test(t, func(t *testing.T) {
			g := mustNew(t, spec, serve(t, b.ServeHTTP))
			if err := g.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			total := g.Snapshot().Window("whole").Total
			if want := total.Requests; !forged && total.Failed > 0 || forged && total.Failed < want || want < 40 {
				t.Errorf("forged %v: %d of %d failed", forged, total.Failed, want)
			}
		})
	}
	if a, b := strings.Join(seen[0].ids, " "), strings.Join(seen[1].ids, " "); a != b {
		t.Errorf("the same seed has other users:\n%s\n%s", a, b)
	}
	for i, text := range seen[0].texts {
		if text == seen[1].texts[i] {
			t.Errorf("two loads of the same seed write %q", text)
		}
	}
}
