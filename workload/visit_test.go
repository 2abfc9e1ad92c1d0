package workload

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// board is an application that keeps notes: a note that is posted can be read after a delay.
type board struct {
	after time.Duration
	notes map[string]time.Time
	reads int
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := r.FormValue("text")
	switch {
	case r.URL.Path == "/login":
		http.SetCookie(w, &http.Cookie{Name: "who", Value: r.FormValue("name")})
	case r.URL.Path == "/whoami":
		if c, err := r.Cookie("who"); err == nil {
			fmt.Fprintf(w, "{%q: %q}", "name", c.Value)
		}
	case r.Method == "POST":
		b.notes[text] = time.Now().Add(b.after)
		fmt.Fprintf(w, `{"id": %d, "lines": [1, 2]}`, len(b.notes))
	default:
		b.reads++
		if at, ok := b.notes[text]; ok && !time.Now().Before(at) {
			fmt.Fprintf(w, "note %s is %s", r.FormValue("id"), text)
		}
	}
}

const noteMix = `
name: notes
operations:
- name: write
  weight: 1
  vars: {token: '{{text 8}}'}
  path: /notes
  form: {text: '{{.token}}'}
  expect: {status: [200], json: ['.lines | length == 2', '$token | length == 8']}
  capture: {id: .id, lines: '.lines'}
  keep: note
  then:
  - path: /notes
    query: {id: '{{.id}}', text: '{{.token}}'}
    within: 2s
    expect: {body: '^note {{.id}} is {{quote .token}}$'}
  - path: /login
    form: {name: 'me {{.lines}}'}
  - path: /whoami
    expect: {json: ['.name == "me " + $lines']}
- name: read
  weight: 0
  recall: note
  vars: {known: '{{if .kept}}{{.kept.token}}{{end}}'}
  path: /notes
  query: {id: 1, text: '{{.known}}'}
  expect: {body: '{{if .known}}is {{.known}}{{end}}'}
`

// once does the first operation of a mix once.
func once(t *testing.T, mix string, h http.HandlerFunc) *Snapshot {
	t.Helper()
	m, err := ParseMix("m.yaml", []byte(mix))
	if err != nil {
		t.Fatal(err)
	}
	g := mustNew(t, Spec{Mix: m, Arrivals: &Arrivals{Process: Even, Rate: Constant(1)}, Duration: 1500 * time.Millisecond}, serve(t, h))
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := g.Snapshot(); s.Wanted != 1 || s.Window("whole").Total.Requests != 1 {
		t.Fatalf("%+v", s)
	} else {
		return s
	}
	return nil
}

// What was written is read back, by what its answer said, and with bounded patience.
func TestThen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration
		spoil  func(w http.ResponseWriter, r *http.Request) bool
		class  Class
		sample string
	}{
		{name: "at once"},
		{name: "after a while", after: time.Second},
		{name: "too late", after: 3 * time.Second, class: Body, sample: "then GET /notes?id=1&text="},
		{name: "refused", spoil: func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		}, class: HTTP4xx, sample: "403 Forbidden"},
		{name: "no JSON", spoil: func(w http.ResponseWriter, r *http.Request) bool {
			io.WriteString(w, "ok")
			return true
		}, class: Body, sample: "the body is no JSON: ok"},
		{name: "another structure", spoil: func(w http.ResponseWriter, r *http.Request) bool {
			io.WriteString(w, `{"id": 1, "lines": []}`)
			return true
		}, class: Body, sample: "the body is not such that .lines | length == 2"},
		{name: "nothing to capture", spoil: func(w http.ResponseWriter, r *http.Request) bool {
			io.WriteString(w, `{"lines": [1, 2]}`)
			return true
		}, class: Body, sample: "the body has no id"},
		{name: "an error of the program", spoil: func(w http.ResponseWriter, r *http.Request) bool {
			io.WriteString(w, `7`)
			return true
		}, class: Body, sample: "the body is not such that"},
		{name: "cut off later", spoil: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/whoami" {
				panic(http.ErrAbortHandler)
			}
			return false
		}, class: Reset, sample: "then GET /whoami"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &board{after: tt.after, notes: map[string]time.Time{}}
				s := once(t, noteMix, func(w http.ResponseWriter, r *http.Request) {
					if tt.spoil == nil || !tt.spoil(w, r) {
						b.ServeHTTP(w, r)
					}
				})
				total := s.Window("whole").Total
				if tt.class == "" {
					if total.Failed != 0 || total.P50 != 0 || total.Max != 0 {
						t.Errorf("%+v, %+v", total, s.Failures) // Waiting is not part of the latency.
					}
					return
				}
				if total.Failed != 1 || s.Failures[0].Class != tt.class || !strings.Contains(s.Failures[0].Sample, tt.sample) {
					t.Errorf("%+v", s.Failures)
				}
			})
		})
	}
}

// Who reads knows what was written, for a while.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := ParseMix("m.yaml", []byte(noteMix))
		if err != nil {
			t.Fatal(err)
		}
		m.Operations[0].Weight, m.Operations[1].Weight = 0, 1
		b := &board{notes: map[string]time.Time{}}
		g := mustNew(t, Spec{Mix: m, Arrivals: &Arrivals{Process: Even, Rate: Constant(1)}, Duration: 30 * time.Second}, serve(t, b.ServeHTTP))
		done := make(chan error)
		go func() { done <- g.Run(t.Context()) }()
		time.Sleep(3500 * time.Millisecond)
		if f := g.Snapshot().Failures; len(f) != 0 {
			t.Errorf("nothing is known: %+v", f)
		}
		g.keeper.keep("note", map[string]any{"token": "lost"})
		time.Sleep(keptFor)
		if f := g.Snapshot().Failures; len(f) != 1 || f[0].Class != Body || !strings.Contains(f[0].Sample, `"is lost"`) {
			t.Errorf("a note was lost: %+v", f)
		}
		count := g.Snapshot().Failures[0].Count
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := g.Snapshot().Failures[0].Count; got > count+1 {
			t.Errorf("it is missed for ever: %d, then %d", count, got)
		}
	})
}
