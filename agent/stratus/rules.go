package stratus

import (
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
)

// rules plan as a runbook says.
type rules struct {
	o       *runbook.Operator
	forgets bool // what it has tried
	tried   []string
	causes  []runbook.Cause
}

func (r *rules) diagnose() { r.causes = r.o.Diagnose() }

func (r *rules) answer() problem.Task { return r.o.Submit() }

func (r *rules) ready() bool {
	if r.forgets && len(r.tried) > 0 {
		r.causes, r.tried = r.o.Again("I look at it afresh."), nil
	}
	return len(r.untried()) > 0
}

func (r *rules) untried() []runbook.Cause {
	return slices.DeleteFunc(slices.Clone(r.causes), func(c runbook.Cause) bool {
		return slices.Contains(r.tried, c.Key())
	})
}

func (r *rules) mitigate() {
	list := r.untried()
	for _, c := range list {
		r.tried = append(r.tried, c.Key())
	}
	r.o.Fix(list)
}

func (r *rules) named() (names []string) {
	for _, c := range r.causes {
		if !slices.Contains(names, c.Component) {
			names = append(names, c.Component)
		}
	}
	return names
}

func (r *rules) repeat() { r.tried = nil }

// reflect looks again, at the system as it was before the try: what was tried is not tried again, and what it seemed to
// explain is.
func (r *rules) reflect(complaints []string) {
	thought := "What I tried last was not it: " + strings.Join(complaints, "; ") + ". What else is wrong?"
	r.causes = r.o.Reflect(thought, r.tried...)
}
