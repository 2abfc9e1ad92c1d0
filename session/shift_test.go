package session

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

const shiftDocument = `
id: shift-shop-1
title: on call for the shop
app: shop
load: {rate: 8}
tasks: [shift]
shift: {length: 3m, incidents: 2, false_alarms: 1, of: [cart-mitigation-1, frontend-mitigation-1]}
`

const awayDocument = `
id: %[1]s-{task}-1
title: it is scaled to no replicas
app: shop
load: {rate: 4}
faults: [{kind: scale_pods_to_zero, target: %[1]s}]
tasks: [localization, mitigation]
answer: {components: [{name: %[1]s}]}
`

// shopShift is a shift on call for a shop, both parts of which are scaled to no pods at some time. The frontend calls
// the cart, so the two are never away at the same time.
func shopShift(t *testing.T) *problem.Problem {
	t.Helper()
	docs := fstest.MapFS{"shift.yaml": {Data: []byte(shiftDocument)}}
	for _, name := range []string{"cart", "frontend"} {
		docs[name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, awayDocument, name)}
	}
	l, err := problem.New([]*app.App{shop()}, fault.Kinds(), docs)
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Find("shift-shop-1")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// responder is an agent that answers what it observes.
func responder(answer func(observation string) string) agent.Entry {
	return agent.Entry{Name: "a", New: func(agent.Briefing) (agent.Agent, error) {
		return agent.Func(func(_ context.Context, observation string) (string, error) { return answer(observation), nil }), nil
	}}
}

// A shift from its beginning to its end, in made-up time. Whoever mends what the pager calls for has a good score, whoever
// does nothing has none, and so has who answers all pages or leaves; nobody is told of what is to come.
func TestShift(t *testing.T) {
	mend, wait := agent.Call("exec_shell", "scale"), agent.Call("submit")
	onPage := func(o string) string {
		if strings.Contains(o, "\nPage ") {
			return mend
		}
		return wait
	}
	quits := 0
	for _, c := range []struct {
		name      string
		agent     agent.Entry
		class     Class
		mended    int
		incidents int
		pages     bool // all of them are answered
		why       string
	}{
		{"mends what it is paged for", responder(onPage), Solved, 2, 2, true, "score "},
		{"does nothing", responder(func(string) string { return wait }), AgentFailed, 0, 2, false, "score 0.0: 0 of 2 incidents mended"},
		{"names everything at once", responder(func(string) string { return agent.Call("submit", []string{"cart", "frontend"}) }), AgentFailed, 0, 2, true, "score 0.0"},
		{"leaves", responder(func(string) string {
			if quits++; quits > 5 {
				panic("enough")
			}
			return agent.Call("exec_shell", "kubectl get pods")
		}), AgentFailed, 0, 2, true, "; the agent panicked: enough"},
		{"looks on and on", responder(func(string) string { return agent.Call("exec_shell", "sleep") }), AgentFailed, 0, 2, false, "no submission within 30 steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				w.act = func(ctx context.Context, command string) string {
					if strings.Contains(command, "sleep") {
						time.Sleep(2 * time.Second)
					}
					if !strings.Contains(command, "scale") {
						return "done"
					}
					for _, name := range []string{"cart", "frontend"} {
						if w.shiftStanding(name) {
							if err := w.scale(ctx, name, 1); err != nil {
								return err.Error()
							}
							w.journal(guard.Entry{Time: time.Now(), Verb: "update", Resource: "deployments", Namespace: "test-shop", Name: name, Status: 200})
						}
					}
					return "done"
				}
				s := &Session{Problem: shopShift(t), Agent: c.agent, Environment: w.Local, Results: results, Seed: 2}
				o, err := s.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.Local.Close()
				score := grade.ReadShift(o.Verdict.Results)
				if o.Verdict.Class != c.class || score == nil || !strings.Contains(o.Verdict.Why, c.why) {
					t.Fatalf("%s: %s, %+v", o.Verdict.Class, o.Verdict.Why, score)
				}
				if score.IncidentsMended != c.mended || score.Incidents != c.incidents || len(score.Needless) > 0 ||
					c.pages && score.PagesRight != score.Pages {
					t.Errorf("%s: %+v", o.Verdict.Why, score)
				}
				rec, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				checkSecrets(t, rec)
				again, err := Grade(rec)
				if err != nil || again.Why != o.Verdict.Why {
					t.Errorf("graded again: %s, %v; it was %s", again.Why, err, o.Verdict.Why)
				}
			})
		})
	}
}

// A day of users begins with the shift, however long it took to get there, and goes through the night by its end.
func TestShiftDay(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		type count struct {
			at time.Duration
			n  int64
		}
		var counts []count
		var began time.Time
		w.act = func(context.Context, string) string {
			if began.IsZero() {
				began = time.Now()
			}
			time.Sleep(5 * time.Second)
			counts = append(counts, count{time.Since(began), w.visits.Load()})
			return "done"
		}
		n := 0
		a := responder(func(string) string {
			if n++; n%20 == 0 {
				return agent.Call("submit", []string{}, 5)
			}
			return agent.Call("exec_shell", "sleep")
		})
		day, err := shopShift(t).OverADay()
		if err != nil {
			t.Fatal(err)
		}
		s := &Session{Problem: day, Agent: a, Environment: w.Local, Results: results, Seed: 2}
		o, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Local.Close()
		rec, err := record.Read(o.Record)
		if err != nil {
			t.Fatal(err)
		}
		var shift record.Shift
		for _, e := range rec.Events {
			if e.Kind == record.ShiftEvent {
				if err := e.Decode(&shift); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !shift.Day {
			t.Errorf("the record has %+v", shift)
		}
		in := func(from, to time.Duration) float64 {
			var first, last count
			for _, c := range counts {
				if c.at >= from && first.at == 0 {
					first = c
				}
				if c.at <= to {
					last = c
				}
			}
			return float64(last.n-first.n) / (last.at - first.at).Seconds()
		}
		begin, middle, end := in(0, 30*time.Second), in(75*time.Second, 105*time.Second), in(150*time.Second, 180*time.Second)
		if !(middle < 0.6*begin && middle < 0.6*end && begin < 1.5*end && end < 1.5*begin) {
			t.Errorf("%.1f visits a second at the beginning, %.1f in the middle, %.1f at the end", begin, middle, end)
		}
	})
}

// shiftStanding reports whether an incident of a service is there.
func (w *fakeShop) shiftStanding(service string) bool {
	d, err := w.client.AppsV1().Deployments("test-shop").Get(context.Background(), service, metav1.GetOptions{})
	return err == nil && d.Spec.Replicas != nil && *d.Spec.Replicas == 0
}

// checkSecrets checks that nothing of the roster is in the record before the agent is done.
func checkSecrets(t *testing.T, rec *record.Record) {
	t.Helper()
	var kinds []string
	for _, e := range rec.Events {
		if e.Kind == record.SubmissionEvent {
			break
		}
		if e.Kind == record.ShiftEvent || e.Kind == record.IncidentEvent {
			kinds = append(kinds, e.Kind)
		}
	}
	if diff := cmp.Diff([]string(nil), kinds); diff != "" {
		t.Errorf("before the agent was done: %s", diff)
	}
}

// The pager tells each page once, with whatever comes first; an answer is to what was told.
func TestPager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []record.Page
		p := newPager(func(_ string, data any) { told = append(told, data.(record.Page)) })
		text, answer, over := p.Answer(t.Context(), nil, time.Minute)
		if text != noPage || over || len(answer.(record.PageAnswer).Pages) > 0 {
			t.Errorf("without a page: %s, %+v", text, answer)
		}
		p.call(time.Now(), []string{"a"})
		r := Reply{Text: "pods\n"}
		if p.addTo(&r); r.Text != "pods\n\nThe pager calls.\nPage 1:\n    a\n" {
			t.Errorf("with a page: %q", r.Text)
		}
		time.Sleep(time.Second)
		p.call(time.Now(), []string{"b"}) // Nobody was told of it yet, and it is the same page.
		text, answer, _ = p.Answer(t.Context(), []string{"geo"}, time.Minute)
		if diff := cmp.Diff([]int{1}, answer.(record.PageAnswer).Pages); diff != "" || text != "Page 1, more:\n    b" {
			t.Errorf("%s %s", text, diff)
		}
		go func() {
			time.Sleep(10 * time.Second)
			p.call(time.Now(), []string{"c"})
		}()
		text, answer, _ = p.Answer(t.Context(), nil, time.Minute)
		if diff := cmp.Diff([]int{}, answer.(record.PageAnswer).Pages); diff != "" || text != "Page 2:\n    c" {
			t.Errorf("%s %s", text, diff)
		}
		synctest.Wait() // The pager tells the record after it has told the agent.
		p.end()
		if text, answer, over = p.Answer(t.Context(), nil, time.Minute); text != shiftOver || !over {
			t.Errorf("after the end: %s, %v", text, over)
		}
		if diff := cmp.Diff([]int{2}, answer.(record.PageAnswer).Pages); diff != "" {
			t.Error(diff)
		}
		r = Reply{Text: "x"}
		if p.addTo(&r); !r.Submitted || len(told) != 3 || !told[1].More {
			t.Errorf("%+v, %+v", r, told)
		}
	})
}
