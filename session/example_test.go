package session_test

import (
	"context"
	"fmt"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// An agent is taken through a problem, from a bare cluster to a verdict. The verdict is a function of the
// record: graded again, it is the same.
func Example() {
	var (
		c cloud.Cloud      // such as embedded.Start returns
		p *problem.Problem // such as a library finds
		a agent.Entry      // one's own
	)
	env := &session.Local{Cloud: c}
	defer env.Close()
	s := session.Session{Problem: p, Agent: a, Environment: env, Results: "results"}
	outcome, err := s.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Verdict.Class, outcome.Verdict.Why)
	rec, err := record.Read(outcome.Record)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := session.Grade(rec)
	fmt.Println(again.Class == outcome.Verdict.Class, err)
}
