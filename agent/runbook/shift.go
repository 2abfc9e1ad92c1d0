package runbook

import (
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
)

// maxNamed is how many services an answer names at most.
const maxNamed = 3

// maxRounds is how often the system is looked at for one page: another one may come meanwhile.
const maxRounds = 3

// roundLooks is how many calls another round takes, at least: there are so many from one answer to the next.
const roundLooks = 14

// onCall waits for pages, and does with each what is done about an incident.
func onCall(c *console, namespace string) {
	c.prepare("First I set up a few helpers, which keep of long outputs what matters.")
	var named []string
	thought := "Nobody has called. I wait for the pager."
	if c.pages != "" {
		thought = "" // It called already.
	}
	for !c.closed {
		if thought != "" {
			if len(named) > 0 {
				c.submit(thought, named[:min(len(named), maxNamed)])
			} else {
				c.submit(thought)
			}
			named = nil
			if c.pages == "" && aci.Paged(c.observation) == "" {
				thought = "Still nothing. I wait on."
				continue
			}
		}
		named, thought = handle(c, namespace)
	}
}

// This is what an [Operator] does that is on call.

// Answer answers the pages so far, and waits for the next one, for so many seconds or as long as is usual. It returns
// what the pager says, or "". There are as many calls from one answer to the next.
func (o *Operator) Answer(thought string, named []string, wait int) (pages string) {
	args := []any{}
	if len(named) > 0 || wait > 0 {
		args = append(args, append([]string{}, named[:min(len(named), maxNamed)]...))
	}
	if wait > 0 {
		args = append(args, wait)
	}
	o.i.console.submit(thought, args...)
	if o.i.closed {
		return ""
	}
	o.i.looks = 0
	o.i.console.heard(aci.Paged(o.i.observation))
	return o.Paged()
}

// Paged takes what the pager has said since it was last taken, or "".
func (o *Operator) Paged() string {
	pages := o.i.pages
	o.i.pages = ""
	return pages
}

// Renew begins anew: nothing is known of the system, and nothing was tried.
func (o *Operator) Renew() {
	c := o.i.console
	*o = Operator{
		i:      &investigation{console: c, system: newSystem(o.i.namespace), task: problem.Mitigation},
		runner: o.runner, now: o.now, set: o.set,
	}
}

// leftAlone is what is said of what is over: who is on call for a system that serves its users does not move what was
// ill.
func leftAlone(over []Finding) string {
	return fmt.Sprintf("%s: %s. That is over, and nothing is wrong now: I leave it alone.", over[0].Component,
		over[0].Evidence)
}

// Over says why nothing is to be done about what was found, if it is over; else "".
func (o *Operator) Over() string {
	if list := public(o.i.all()); Over(list) {
		return leftAlone(list)
	}
	return ""
}

// handle looks for what is wrong and sets it right, and again if the pager calls meanwhile. It returns who was at
// fault, and what to say.
func handle(c *console, namespace string) (named []string, thought string) {
	c.looks = 0
	for range maxRounds {
		c.pages = ""
		i := &investigation{console: c, system: newSystem(namespace), task: problem.Mitigation}
		i.investigate()
		over := public(i.all())
		if !Over(over) {
			for _, f := range i.causes() {
				if !f.vague() && !slices.Contains(named, f.component) {
					named = append(named, f.component)
				}
			}
			i.repair()
		}
		switch list := i.causes(); {
		case Over(over):
			thought = leftAlone(over)
		case len(named) == 0:
			thought = "I found nothing that is wrong. I wait for the next page."
		case i.well:
			thought = "All pods are ready again and requests succeed. I wait for the next page."
		case len(list) > 0:
			thought = "I have done what I can, but it is not well yet: " + summary(list) + "."
		default:
			thought = "I have done what I can. I wait for the next page."
		}
		if c.pages == "" || c.left() < roundLooks {
			break
		}
	}
	return named, thought
}
