package hierarchy

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
)

// This file is about a group that is on call: it waits for the pager, does about each page what is done about an
// incident, and answers. What is counted is counted from one answer to the next, so that a long shift is no longer
// than a short one for who bounds it. No heartbeats go out: the pager calls.

const (
	// pageLooks is how often the system is looked at for one page: another one may come meanwhile.
	pageLooks = 3
	// lookCalls is how many calls another such look takes, at least.
	lookCalls = 14
	// maxNamed is how many services an answer names at most.
	maxNamed = 3
	// returns is how often the group comes back to what it could not mend, though nobody calls, and returnAfter how
	// many seconds it waits before it does: an alert that fires already calls nobody a second time.
	returns     = 2
	returnAfter = 60
	// leastWait is for how many seconds one can wait for a page at least.
	leastWait = 5
)

// outcome is what came of a page.
type outcome struct {
	thought string
	named   []string // who was at fault
	ill     bool     // it is not well yet
	called  bool     // the pager has called meanwhile
}

// answer is the submission that answers the pages so far.
func (o outcome) answer() string {
	args, wait := []any{}, 0
	switch {
	case o.called:
		wait = leastWait
	case o.ill:
		wait = returnAfter
	}
	if len(o.named) > 0 || wait > 0 {
		args = append(args, append([]string{}, o.named[:min(len(o.named), maxNamed)]...))
	}
	if wait > 0 {
		args = append(args, wait)
	}
	return "Thought: " + o.thought + "\n\nAction:\n" + agent.Call("submit", args...)
}

// onCall has the group on call until somebody ends it.
func (r *ruleChief) onCall(ctx context.Context) (err error) {
	last, pages := nobodyYet, r.g.floor.paged() // It may have called already.
	for quiet := 0; ; {
		if pages == "" {
			pages = r.g.floor.paged() // For which there were no calls left.
			last.called = pages != ""
			text, err := r.crew.submit(ctx, last.answer())
			if err != nil {
				return err
			}
			pages = strings.TrimSpace(pages + "\n" + aci.Paged(text) + "\n" + r.g.floor.paged())
		}
		if quiet++; pages != "" {
			quiet = 0
		} else if !last.ill || quiet > returns {
			last = waitOn
			continue
		}
		if last, err = r.handle(ctx, pages); err != nil {
			return err
		}
		pages = ""
	}
}

// handIn makes a submission. Who is on call begins anew then with what is counted from one answer to the next.
func (g *group) handIn(ctx context.Context, response string) (string, error) {
	text, err := g.floor.call(ctx, g.head, response)
	if g.Task == problem.OnCall && aci.Taken(text) {
		g.answers.Add(1)
		g.floor.renew()
		if g.bus != nil {
			g.bus.renew()
			g.chief.base = g.chief.round
		}
	}
	return text, err
}

// waitOn is what is submitted while the pager does not call, and unanswered what if a model comes to no end.
var (
	nobodyYet  = outcome{thought: "Nobody has called. We wait for the pager."}
	waitOn     = outcome{thought: "Still nothing. We wait on."}
	unanswered = outcome{thought: "We come to no end about this, and wait for the next page."}.answer()
)

// next makes a submission for the model of a chief, and on call waits until the pager calls, without asking the model
// again and again whether it wants to wait on.
func (c *chief) next(ctx context.Context, response string) (string, error) {
	text, err := c.submit(ctx, response)
	for err == nil && c.g.Task == problem.OnCall && aci.Taken(text) && aci.Paged(text) == "" {
		if pages := c.g.floor.paged(); pages != "" {
			return aci.AddPages(text, pages), nil
		}
		text, err = c.submit(ctx, waitOn.answer())
	}
	return text, err
}

// handle has the maintainers find what is wrong and put it right, and again if the pager calls meanwhile. Each look
// begins with nothing known but what was tried since the pager has called.
func (r *ruleChief) handle(ctx context.Context, pages string) (o outcome, err error) {
	tried := map[string]bool{}
	for range pageLooks {
		if pages != "" {
			clear(tried)
		}
		r.g.looks.Add(1)
		now := r.g.newRuleChief(r.crew)
		now.pages, now.tried = pages, tried
		if err := now.see(ctx); err != nil {
			return o, err
		}
		if err := now.findAndMend(ctx); err != nil {
			return o, err
		}
		for _, name := range now.blamed {
			if !contains(o.named, name) {
				o.named = append(o.named, name)
			}
		}
		o.ill = len(now.causes()) > 0 && !runbook.Over(now.findings())
		o.thought = now.sumUp(len(o.named) == 0)
		if r.g.floor.left() < lookCalls {
			break
		}
		if pages = r.g.floor.paged(); o.ill {
			pages = strings.TrimSpace(now.early + "\n" + pages)
		}
		if acted := r.g.repairs.Load() > now.repaired; pages == "" && (!o.ill || !acted) {
			break
		}
	}
	return o, nil
}

// hear takes what the pager has said before all are asked whether they are well: if they are, it was about that.
func (r *ruleChief) hear() { r.early = strings.TrimSpace(r.early + "\n" + r.g.floor.paged()) }

// see looks who is not ready, now that the pager has called.
func (r *ruleChief) see(ctx context.Context) error {
	thought := "It was not well when I last looked. Who is not ready now?"
	if r.pages != "" {
		thought = "The pager calls. Who is not ready?"
	}
	text, err := r.g.floor.call(ctx, r.g.head, "Thought: "+thought+"\n\nAction:\n"+
		agent.Call("get_topology", r.g.Namespace))
	if err == nil {
		if site, unready := readSite(text); len(site.Services) > 0 { // Else monitoring may be what is ill.
			r.g.unready = unready
		}
	}
	return err
}

// findAndMend does the work on one look.
func (r *ruleChief) findAndMend(ctx context.Context) error {
	find, mend := r.ways()
	if err := unlessRounds(find(ctx)); err != nil {
		return err
	}
	if runbook.Over(r.findings()) {
		return nil
	}
	r.blame()
	if err := unlessRounds(mend(ctx)); err != nil {
		return err
	}
	r.blame()
	return nil
}

// blame notes who is at fault as far as is known now.
func (r *ruleChief) blame() {
	for _, f := range r.causes() {
		if f.Remedy() && !contains(r.blamed, f.Component) {
			r.blamed = append(r.blamed, f.Component)
		}
	}
}

// sumUp says what came of a page.
func (r *ruleChief) sumUp(nobody bool) string {
	list := r.causes()
	switch {
	case runbook.Over(r.findings()):
		return list[0].Component + ": " + list[0].Evidence + ". That is over, and nothing is wrong now: we leave it " +
			"alone."
	case len(list) > 0 && nobody:
		return "Nobody finds anything that could be put right, but not all is well: " + list[0].Evidence + "."
	case len(list) > 0:
		return "We have done what we can, but it is not well yet: " + runbook.Sum(list[:1]) + "."
	case nobody:
		return "Nobody finds anything wrong. We wait for the next page."
	}
	return "Whoever I asked says that it is well again. We wait for the next page."
}

// called are the services that the pager names, of those who have a say.
func (r *ruleChief) called() []string {
	return slices.DeleteFunc(r.g.called(r.pages), func(s string) bool { return !contains(r.ownedBy([]string{s}), s) })
}

// called are the services that the pager names, by themselves or by their pods.
func (g *group) called(pages string) (names []string) {
	for _, s := range g.services() {
		if pageAbout(s).MatchString(pages) {
			names = append(names, s)
		}
	}
	return names
}

func pageAbout(service string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s/])` + regexp.QuoteMeta(service) +
		`(?:-[a-z0-9]{6,10}-[a-z0-9]{5})?(?:[\s.,:]|$)`)
}

// saying are the lines of the pager that name a service.
func (r *ruleChief) saying(service string) string {
	var list []string
	for line := range strings.Lines(r.pages) {
		if pageAbout(service).MatchString(line) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return strings.Join(list, " ")
}

// calling is what equals are told who begin to talk.
func calling(pages string) string {
	if pages == "" {
		return frontText
	}
	return "The pager calls:\n" + pages + "\n" + frontText
}
