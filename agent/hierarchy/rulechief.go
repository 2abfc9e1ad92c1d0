package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
)

// crew is who does the tasks of a chief.
type crew interface {
	assign(ctx context.Context, tasks []Task) ([]Message, error)
	unsolicited() []Message
	// beat has maintainers begin by themselves, with a heartbeat, and returns what they say.
	beat(ctx context.Context, names []string, text string, with Message) ([]Message, error)
	submit(ctx context.Context, response string) (string, error)
}

// ruleChief leads by rules: it asks those first through whom users come, follows what they say to the cause, has the
// owner of that put it right, and has it confirmed.
type ruleChief struct {
	g       *group
	crew    crew
	reports map[string][]runbook.Finding // the last of each maintainer
	mute    map[string]bool              // who did not answer
	tried   map[string]bool              // repairs
	// repaired is how many repairs the group had made before.
	repaired int64
	well     bool // a repair has helped
	// Of a group on call: what the pager has said, what it said meanwhile before all were last asked whether they are
	// well, and who was at fault.
	pages, early string
	blamed       []string
}

func (g *group) newRuleChief(c crew) *ruleChief {
	return &ruleChief{
		g: g, crew: c, reports: map[string][]runbook.Finding{}, mute: map[string]bool{}, tried: map[string]bool{},
		repaired: g.repairs.Load(),
	}
}

// maxRepairs is how many times causes are worked on before the chief gives up.
const maxRepairs = 4

// lead does the task, question by question.
func (r *ruleChief) lead(ctx context.Context) error {
	task := r.g.Task
	switch task {
	case problem.Operation:
		return r.operate(ctx)
	case problem.OnCall:
		return r.onCall(ctx)
	}
	find, mend := r.ways()
	if err := unlessRounds(find(ctx)); err != nil {
		return err
	}
	if task == problem.Incident {
		task = problem.Detection
	}
	for {
		if task == problem.Mitigation {
			if err := unlessRounds(mend(ctx)); err != nil {
				return err
			}
		}
		text, err := r.crew.submit(ctx, r.answer(task))
		if err != nil {
			return err
		}
		next := aci.Asked(text)
		if r.g.Task != problem.Incident || next == "" {
			return nil
		}
		task = problem.Task(next)
	}
}

// ways are how the members find out what is wrong, and how they put it right.
func (r *ruleChief) ways() (find, mend func(ctx context.Context) error) {
	if r.g.mode == peers {
		return r.findAmongPeers, r.mendAmongPeers
	}
	return r.find, r.mend
}

// round hands out tasks and takes the answers in.
func (r *ruleChief) round(ctx context.Context, tasks []Task) error {
	room := r.g.floor.left() - reserve
	if room <= 0 || len(tasks) == 0 {
		return nil
	}
	answers, err := r.crew.assign(ctx, tasks[:min(len(tasks), room)])
	if err != nil {
		return err
	}
	for _, m := range append(answers, r.crew.unsolicited()...) {
		if r.mute[m.From] = m.Silent; !m.Silent {
			r.reports[m.From] = m.Findings
		}
	}
	return nil
}

// unlessRounds is an error, but for that of a round too many: rules submit what they know then.
func unlessRounds(err error) error {
	if errors.Is(err, errRounds) {
		return nil
	}
	return err
}

// findings are all that is known: of somebody who has answered, what it says of itself, and of others what is seen
// from outside.
func (r *ruleChief) findings() (list []runbook.Finding) {
	for _, from := range sortedKeys(r.reports) {
		for _, f := range r.reports[from] {
			if _, answered := r.reports[f.Component]; f.Component == from || !answered {
				list = append(list, f)
			}
		}
	}
	return list
}

func (r *ruleChief) causes() []runbook.Finding {
	return runbook.Conclude(r.findings(), r.g.site.DependsOn)
}

// find has the maintainers look until it is known what is wrong.
func (r *ruleChief) find(ctx context.Context) error {
	var tasks []Task
	for _, s := range r.ownedBy(r.g.entries()) {
		tasks = append(tasks, Task{To: s, Text: "Users come in through you. Are their requests answered as they " +
			"should " +
			"be? If not, is it you, or which of those you call?"})
	}
	for _, s := range r.called() {
		if !contains(r.ownedBy(r.g.entries()), s) {
			tasks = append(tasks, Task{To: s, Text: "The pager says: " + r.saying(s) + " Is it you, or somebody whom " +
				"you depend on?"})
		}
	}
	for _, s := range r.first() {
		tasks = append(tasks, Task{To: s, Text: "I see that not all of your pods are ready. Why is that, and is " +
			"it you, or " +
			"somebody whom you wait for?"})
	}
	if err := r.follow(ctx, tasks); err != nil || r.enough() {
		return err
	}
	if r.sweeps() {
		rest := r.rest()
		rest = rest[:max(0, min(len(rest), r.g.floor.left()-r.after()))]
		if err := r.follow(ctx, rest); err != nil || r.enough() {
			return err
		}
	}
	return r.lookAgain(ctx)
}

// follow hands out tasks, and more to those whom the answers point at.
func (r *ruleChief) follow(ctx context.Context, tasks []Task) error {
	for len(tasks) > 0 && r.g.floor.left() > reserve {
		if err := r.round(ctx, tasks); err != nil || r.enough() {
			return err
		}
		tasks = r.trail()
	}
	return nil
}

// first are those who are not ready, beside those through whom users come.
func (r *ruleChief) first() (names []string) {
	const most = 6
	for _, s := range r.g.unready {
		if !contains(r.g.entries(), s) && !contains(r.called(), s) && contains(r.ownedBy([]string{s}), s) &&
			len(names) < most {
			names = append(names, s)
		}
	}
	return names
}

// sweeps reports whether those are to be asked, too, whom nothing points at: if no cause is known, or if all causes
// are asked for.
func (r *ruleChief) sweeps() bool {
	c := r.causes()
	return len(c) == 0 || !c[0].Settled() || r.g.Task == problem.Localization || r.g.Task == problem.Analysis
}

// after is how many calls are to be left when all were asked: for a second look, and for repairs if they are wanted.
func (r *ruleChief) after() int {
	switch r.g.Task {
	case problem.Mitigation, problem.Incident, problem.OnCall:
		return reserve + 9
	}
	return reserve + 3
}

// enough reports whether it can be said that something is wrong, where nothing else is asked.
func (r *ruleChief) enough() bool {
	return r.g.Task == problem.Detection && slices.ContainsFunc(r.findings(), runbook.Finding.Certain)
}

// ownedBy are those of some services that have a maintainer here.
func (r *ruleChief) ownedBy(names []string) (list []string) {
	for _, n := range names {
		if contains(r.g.services(), n) && (r.g.service == "" || r.g.service == n) {
			list = append(list, n)
		}
	}
	if len(list) == 0 && r.g.service != "" {
		list = []string{r.g.service}
	}
	return list
}

// asked reports whether somebody was asked before.
func (r *ruleChief) asked(name string) bool {
	_, answered := r.reports[name]
	return answered || r.mute[name]
}

// trail are tasks for those whom the answers point at and who were not asked.
func (r *ruleChief) trail() (tasks []Task) {
	told := map[string][]string{}
	var order []string
	point := func(at, what string) {
		if r.asked(at) || !contains(r.ownedBy([]string{at}), at) {
			return
		}
		if len(told[at]) == 0 {
			order = append(order, at)
		}
		told[at] = append(told[at], what)
	}
	for _, from := range sortedKeys(r.reports) {
		led := false
		own := ""
		for _, f := range r.reports[from] {
			if f.Component == from {
				own = f.Evidence
				led = led || f.Settled()
			} else {
				point(f.Component, fmt.Sprintf("%s says: %s", from, inPerson(f.Evidence, "your", "you")))
				led = true
			}
		}
		if own != "" && !led {
			for _, s := range r.g.site.Calls[from] {
				point(s, fmt.Sprintf("%s, which calls you, says that %s, and finds no reason for it on its "+
					"side", from, own))
			}
		}
	}
	for _, at := range order {
		tasks = append(tasks, Task{To: at, Text: strings.Join(told[at], ". ") +
			". Is the cause with you? If it is further down, say where."})
	}
	return tasks
}

// rest are tasks for all who were not asked.
func (r *ruleChief) rest() (tasks []Task) {
	for _, s := range r.ownedBy(r.g.services()) {
		if !r.asked(s) {
			tasks = append(tasks, Task{To: s, Text: "Please look at your service as well: is anything not as it " +
				"should " +
				"be, even if nobody has noticed yet?"})
		}
	}
	return tasks
}

// lookAgain has those look once more who saw what may be of a moment: what is seen only once is no fault, and a fault
// may take a moment to show.
func (r *ruleChief) lookAgain(ctx context.Context) error {
	list := r.causes()
	if len(list) > 0 && list[0].Settled() {
		return nil
	}
	who := r.ownedBy(r.g.entries())
	text := "Nobody sees anything wrong so far, but trouble may take a while to show. Please look once more, over " +
		"the next seconds."
	if len(list) > 0 {
		text = fmt.Sprintf("So far it looks as if %s were at fault: %s. Please look once more, over the next "+
			"seconds: is it "+
			"still so?", list[0].Component, list[0].Evidence)
		if at := list[0].Component; !contains(who, at) && contains(r.ownedBy([]string{at}), at) {
			who = append(who, at)
		}
	}
	slices.Sort(who)
	var tasks []Task
	for _, s := range who {
		tasks = append(tasks, Task{To: s, Text: text, Message: Message{Want: again}})
	}
	return r.round(ctx, tasks)
}

// mend has those who own the causes put them right, and those who felt them say whether that helped.
func (r *ruleChief) mend(ctx context.Context) error {
	for range maxRepairs {
		var tasks []Task
		fixed := []string{}
		for _, f := range r.causes() {
			key := f.Component + " " + f.Kind
			if f.Remedy() && !r.tried[key] && contains(r.ownedBy([]string{f.Component}), f.Component) &&
				!contains(fixed, f.Component) {
				r.tried[key] = true
				fixed = append(fixed, f.Component)
				tasks = append(tasks, Task{
					To: f.Component, Message: Message{Want: repair, Findings: []runbook.Finding{f}},
					Text: fmt.Sprintf("All points to you: %s. Put that right, wait until it has taken effect, and "+
						"tell me "+
						"what you did.", inPerson(f.Evidence, "your", "you")),
				})
			}
		}
		if len(tasks) == 0 || r.g.floor.left() <= reserve {
			return nil
		}
		before := maps.Clone(r.reports)
		if err := r.round(ctx, tasks); err != nil {
			return err
		}
		r.hear()
		if err := r.confirm(ctx, fixed, before); err != nil {
			return err
		}
		if r.well = len(r.causes()) == 0; r.well {
			return nil
		}
		if !r.causes()[0].Remedy() { // It may take a moment for requests to fare better.
			if err := r.lookAgain(ctx); err != nil {
				return err
			}
			if r.well = len(r.causes()) == 0; r.well {
				return nil
			}
		}
	}
	return nil
}

// confirm asks those whose repairs were made, those who had felt them and those through whom users come.
func (r *ruleChief) confirm(ctx context.Context, fixed []string, before map[string][]runbook.Finding) error {
	who := slices.Clone(fixed)
	for _, s := range r.ownedBy(r.g.entries()) {
		if !contains(who, s) {
			who = append(who, s)
		}
	}
	for _, from := range sortedKeys(before) {
		if len(before[from]) > 0 && !contains(who, from) {
			who = append(who, from)
		}
	}
	var tasks []Task
	for _, s := range who {
		text := fmt.Sprintf("%s has put something right. Is it well again on your side?", strings.Join(fixed, " and "))
		if contains(fixed, s) {
			text = "Look at it once more: does your service work as it should now?"
		}
		tasks = append(tasks, Task{To: s, Text: text, Message: Message{Want: confirm}})
	}
	return r.round(ctx, tasks)
}

// answer is the submission, with why.
func (r *ruleChief) answer(task problem.Task) string {
	list := r.causes()
	thought := fmt.Sprintf("All %d maintainers I asked find their services well.", len(r.reports))
	if len(list) > 0 {
		thought = "What the maintainers say comes to this: " + runbook.Sum(list) + "."
	}
	var args []any
	switch task {
	case problem.Detection:
		args = []any{map[bool]string{true: "Yes", false: "No"}[len(list) > 0]}
	case problem.Localization:
		found := []string{}
		for _, f := range list {
			found = append(found, f.Component)
		}
		args = []any{found}
	case problem.Analysis:
		if len(list) > 0 {
			args = []any{list[0].Cause()}
		}
	default:
		if r.well {
			thought = "Whoever I asked says that it is well again: we are done."
		} else if len(list) > 0 {
			thought = "We have done what we can, but it is not well yet: " + runbook.Sum(list) + "."
		}
	}
	return "Thought: " + thought + "\n\nAction:\n" + agent.Call("submit", args...)
}
