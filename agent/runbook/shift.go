package runbook

import (
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

// maxRounds is how often the system is looked at for one page: another one may come meanwhile.
const maxRounds = 3

// roundLooks is how many calls another round takes, at least: there are so many from one answer to the next.
const roundLooks = 14

// onCall waits for pages, and does with each what is done about an incident.
func onCall(c *console, namespace string) {
	c.prepare("First I set up a few helpers, which keep of long outputs what matters.")
	var named []string
	thought := "Nobody has called. I wait for the pager."
	if c.paged {
		thought = "" // It called already.
	}
	for !c.closed {
		if thought != "" {
			if len(named) > 0 {
				c.submit(thought, named[:min(len(named), 3)])
			} else {
				c.submit(thought)
			}
			named = nil
			if !c.paged && !strings.Contains(c.observation, "\nPage ") {
				thought = "Still nothing. I wait on."
				continue
			}
		}
		named, thought = handle(c, namespace)
	}
}

// handle looks for what is wrong and sets it right, and again if the pager calls meanwhile. It returns who was at
// fault, and what to say.
func handle(c *console, namespace string) (named []string, thought string) {
	c.looks = 0
	for range maxRounds {
		c.paged = false
		i := &investigation{console: c, system: newSystem(namespace), task: problem.Mitigation}
		i.investigate()
		for _, f := range i.causes() {
			if !f.vague() && !slices.Contains(named, f.component) {
				named = append(named, f.component)
			}
		}
		i.repair()
		switch list := i.causes(); {
		case len(named) == 0:
			thought = "I found nothing that is wrong. I wait for the next page."
		case i.well:
			thought = "All pods are ready again and requests succeed. I wait for the next page."
		case len(list) > 0:
			thought = "I have done what I can, but it is not well yet: " + summary(list) + "."
		default:
			thought = "I have done what I can. I wait for the next page."
		}
		if !c.paged || c.left() < roundLooks {
			break
		}
	}
	return named, thought
}
