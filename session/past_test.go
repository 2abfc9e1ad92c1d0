package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world"
)

// The record says which past a run's world had: one that was written, or none, where no cloud can write one.
func TestPastInTheRecord(t *testing.T) {
	const seed = 11
	for _, c := range []struct {
		name    string
		written bool
		want    record.Past
	}{
		{"written", true, record.Past{Made: record.PastWritten, Days: int(world.Age(seed) / (24 * time.Hour))}},
		{"none", false, record.Past{Made: record.PastNone}},
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
					Results: results, Seed: seed,
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
