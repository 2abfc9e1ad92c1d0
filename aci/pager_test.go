package aci

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/internal/term"
)

// told is a pager that notes what it is told.
type told struct {
	services []string
	wait     time.Duration
	over     bool
}

func (p *told) Answer(_ context.Context, services []string, wait time.Duration) (string, any, bool) {
	p.services, p.wait = services, wait
	return "Page 1:\n    x", nil, p.over
}

func TestAnswerPages(t *testing.T) {
	for _, c := range []struct {
		name   string
		call   *Call
		over   bool
		want   []string
		wait   time.Duration
		failed bool
	}{
		{"nothing is named", &Call{Name: "submit"}, false, nil, 5 * time.Minute, false},
		{"services are named", &Call{Name: "submit", Args: []any{[]any{"geo", "rate"}}}, false, []string{"geo", "rate"}, 5 * time.Minute, false},
		{"as a text", &Call{Name: "submit", Args: []any{"geo, rate"}}, false, []string{"geo", "rate"}, 5 * time.Minute, false},
		{"for a while", &Call{Name: "submit", Kwargs: map[string]any{"wait": int64(10)}}, false, nil, 10 * time.Second, false},
		{"the shift is over", &Call{Name: "submit"}, true, nil, 5 * time.Minute, false},
		{"for too short", &Call{Name: "submit", Kwargs: map[string]any{"wait": int64(0)}}, false, nil, 0, true},
		{"what is no name", &Call{Name: "submit", Args: []any{[]any{int64(1)}}}, false, nil, 0, true},
		{"an answer to something else", &Call{Name: "submit", Args: []any{map[string]any{"system_level": "x"}}}, false, nil, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &told{over: c.over}
			i := &Interface{o: Options{Task: term.OnCall, Pager: p}, actions: Actions(term.OnCall)}
			r := i.Do(t.Context(), c.call)
			if diff := cmp.Diff(c.want, p.services); diff != "" || p.wait != c.wait || r.Failed != c.failed {
				t.Errorf("waits %v: %s %s", p.wait, r.Text, diff)
			}
			if !c.failed && (r.Question != term.Page || r.Submitted != c.over || (r.Next == "") != c.over) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestCutPages(t *testing.T) {
	rest, pages := CutPages(AddPages(`{"a": 1}`+"\n", "Page 1:\n    x"))
	if rest != `{"a": 1}` || pages != "Page 1:\n    x\n" {
		t.Errorf("%q, %q", rest, pages)
	}
	if rest, pages = CutPages("nothing"); rest != "nothing" || pages != "" {
		t.Errorf("%q, %q", rest, pages)
	}
}
