package stratus

import (
	"slices"
	"strings"
)

// This file has the machine on call: it waits for the pager, and does with each page what it does with an incident.

const (
	// pageLooks is how often the system is looked at for one page: another one may come meanwhile.
	pageLooks = 3
	// lookCalls is how many calls another such look takes, at least.
	lookCalls = 20
	// returns is how often the machine comes back to what it could not mend, though nobody calls, and returnAfter how
	// many seconds it waits before it does: an alert that fires already calls nobody a second time.
	returns     = 2
	returnAfter = 60
	// leastWait is for how many seconds one can wait for a page at least.
	leastWait = 5
)

// onCall waits for pages and deals with them until the shift is over.
func (m *machine) onCall() {
	thought, pages := "Nobody has called. I wait for the pager.", m.Paged()
	var named []string
	ill := false
	for quiet := 0; !m.Closed(); {
		if pages == "" {
			wait := 0
			switch {
			case m.hear(): // There were no calls left for it.
				wait = leastWait
			case ill:
				wait = returnAfter
			}
			pages = strings.TrimSpace(m.pages + "\n" + m.Answer(thought, named, wait))
		}
		if quiet++; pages != "" {
			quiet = 0
		} else if !ill || quiet > returns {
			thought, named, ill = "Still nothing. I wait on.", nil, false
			continue
		}
		named, ill = m.handle(pages)
		thought, pages = m.sumUp(len(named) > 0, ill), ""
	}
}

// handle does about pages what is done about an incident, and again if the pager calls meanwhile. It returns who was at
// fault, and whether it is still not well.
func (m *machine) handle(pages string) (named []string, ill bool) {
	for range pageLooks {
		m.Renew()
		m.plan(pages)
		m.tries, m.bare, m.complaints, m.pages, m.over = 0, false, nil, "", ""
		for s := detect; s != done && !m.Closed(); {
			s = m.step(s)
		}
		m.close()
		if m.over != "" {
			return named, false
		}
		for _, name := range m.planner.named() {
			if !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
		ill = len(m.complaints) > 0
		if m.Left() < lookCalls {
			break
		}
		if !m.hear() {
			break
		}
		pages = m.pages
	}
	return named, ill
}

// hear takes what the pager has said, and reports whether there is anything that the oracles have not looked at.
func (m *machine) hear() bool {
	m.pages = strings.TrimSpace(m.pages + "\n" + m.Paged())
	return m.pages != ""
}

// sumUp says what came of a page.
func (m *machine) sumUp(found, ill bool) string {
	switch {
	case m.over != "":
		return m.over
	case ill:
		return "I have done what I can, but it is not well yet: " + strings.Join(m.complaints, "; ") + "."
	case found && m.mode == Once:
		return "I have done what I know to do. I wait for the next page."
	case found:
		return "The oracles find the system well. I wait for the next page."
	}
	return "I found nothing that is wrong. I wait for the next page."
}
