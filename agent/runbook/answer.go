package runbook

import (
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

// submit answers what the task asks for.
func (i *investigation) submit() {
	list := i.causes()
	thought := "I found nothing that is wrong."
	if len(list) > 0 {
		thought = "My conclusion: " + summary(list) + "."
	}
	switch i.task {
	case problem.Detection:
		if len(list) > 0 {
			i.console.submit(thought, "Yes")
		} else {
			i.console.submit(thought, "No")
		}
	case problem.Localization:
		names := []string{}
		for _, f := range list {
			names = append(names, f.component)
		}
		i.console.submit(thought, names)
	case problem.Analysis:
		if len(list) == 0 {
			i.console.submit(thought)
			return
		}
		i.console.submit(thought, causes[list[0].kind])
	default:
		if i.well {
			thought = "All pods are ready again, every service can be reached and requests succeed: the " +
				"incident is over."
		} else if len(list) > 0 {
			thought = "I have done what I can, but it is not well yet: " + summary(list) + "."
		}
		i.console.submit(thought)
	}
}

// summary says what the causes are.
func summary(list []finding) string {
	var clauses []string
	for _, f := range list {
		clauses = append(clauses, fmt.Sprintf("%s is at fault: %s", f.component, f.evidence))
	}
	return strings.Join(clauses, "; ")
}
