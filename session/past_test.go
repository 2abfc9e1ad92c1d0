package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world"
	"github.com/aiopslab/aiopslab/world/noise"
)

// The record says which past a run's world had: one that was written, or none, where no cloud can write one.
func TestPastInTheRecord(t *testing.T) {
	const seed = 11
	for _, c := range []struct {
		name    string
		written bool
		lived   time.Duration
		want    record.Past
	}{
		{"written", true, time.Minute, record.Past{Made: record.PastWritten, Days: int(world.Age(seed) / (24 * time.Hour))}},
		{"none", false, 0, record.Past{Made: record.PastNone}},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				if c.written {
					w.Local.Cloud = &historian{Cloud: w.Cloud}
				}
				s := Session{
					Problem: shopProblem(problem.Detection), Agent: scripted(agent.Call("submit", "Yes")), Environment: w.Local,
					Results: results, Seed: seed, Lived: c.lived,
				}
				o, err := s.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.Local.Close()
				r, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				var got []record.Past
				at := map[string]int{}
				for _, e := range r.Events {
					at[e.Kind] = e.Seq
					if e.Kind == record.PastEvent {
						var p record.Past
						if err := e.Decode(&p); err != nil {
							t.Fatal(err)
						}
						got = append(got, p)
					}
				}
				if len(got) != 1 || got[0] != c.want || at[record.PastEvent] < at[record.SubmissionEvent] {
					t.Errorf("the record tells %+v at %d, the agent was done at %d; want %+v", got, at[record.PastEvent],
						at[record.SubmissionEvent], c.want)
				}
				if c.written && (got[0].Days < 21 || got[0].Days > 31) {
					t.Errorf("it is %d days old", got[0].Days)
				}
			})
		})
	}
}

// Where no past can be written, users have the application for a while before anything goes wrong. It is released then, as
// it is again with the fault; its services have the pods they are to have when that is over, and the verdict is the same.
func TestLivedPast(t *testing.T) {
	const lived = 90 * time.Second
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		begin := time.Now()
		var visits int64
		s := Session{
			Problem: shopProblem(problem.Mitigation), Environment: w.Local, Results: results, Seed: 5, Noise: noise.Calm,
			Lived: lived,
			Agent: acting(func(_ context.Context, n int) (string, error) {
				if n == 1 {
					visits = w.visits.Load()
					return agent.Call("exec_shell", "kubectl scale deployment/cart"), nil
				}
				return agent.Call("submit"), nil
			}),
		}
		o, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Local.Close()
		r, err := record.Read(o.Record)
		if err != nil {
			t.Fatal(err)
		}
		var past record.Past
		var fault time.Time
		releases := map[string][]time.Time{}
		for _, e := range r.Events {
			var n record.Noise
			switch e.Kind {
			case record.PastEvent:
				err = e.Decode(&past)
			case record.FaultEvent:
				fault = e.Time
			case record.NoiseEvent:
				err = e.Decode(&n)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range n.Changes {
				if c.What == "release" {
					releases[c.Service] = append(releases[c.Service], c.Time)
				}
			}
		}
		if past.Made != record.PastLived || past.Seconds < lived.Seconds() || o.Verdict.Class != Solved {
			t.Errorf("the past is %+v, the verdict %+v", past, o.Verdict)
		}
		if fault.Sub(begin) < lived || visits < int64(lived.Seconds()) {
			t.Errorf("the fault came after %v, and %d visits", fault.Sub(begin), visits)
		}
		for _, service := range []string{"frontend", "cart"} {
			at := releases[service]
			if len(at) != 2 || at[0].Sub(begin) > lived/2 || fault.Sub(at[1]) > lived/2 || w.replicas(t, service) != 1 {
				t.Errorf("%s was released at %v and has %d pods; the fault came at %v", service, at, w.replicas(t, service), fault)
			}
		}
	})
}

// While users have the application, a run can be interrupted; nothing goes on in it then.
func TestLivedPastInterrupted(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		ctx, cancel := context.WithCancel(t.Context())
		s := Session{
			Problem: shopProblem(problem.Detection), Environment: w.Local, Results: results, Seed: 5, Noise: noise.Busy,
			Lived: time.Hour, Agent: scripted(agent.Call("submit", "Yes")),
			Progress: func(_ string, data any) {
				if data == (record.Phase{Name: "letting users have it for 1h0m0s"}) {
					time.AfterFunc(20*time.Minute, cancel)
				}
			},
		}
		o, err := s.Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if o.Verdict.Class != Inconclusive || w.life != nil {
			t.Errorf("%+v; something goes on: %t", o.Verdict, w.life != nil)
		}
		w.Local.Close()
	})
}
