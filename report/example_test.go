package report_test

import (
	"fmt"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// A report counts what says something about the agent, and lists the rest apart. Records on disk are
// read with [report.Files] and [report.Read].
func ExampleBuilder() {
	var b report.Builder
	for i, class := range []session.Class{session.Solved, session.AgentFailed, session.Solved, session.Infra} {
		b.Add(&report.Run{Run: record.Run{ID: fmt.Sprint(i), Agent: "mine"}, Task: problem.Detection, Class: class})
	}
	r := b.Report()
	fmt.Println(r.Runs, "runs,", r.Counted, "of them count")
	for _, row := range r.Overall {
		fmt.Printf("%s solved %d of %d\n", row.Agent, row.Accuracy.N, row.Accuracy.Of)
	}
	// Output:
	// 4 runs, 3 of them count
	// mine solved 2 of 3
}
