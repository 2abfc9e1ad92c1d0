package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// ruleMind is the mind of a maintainer that follows a runbook for its service.
type ruleMind struct {
	g    *group
	name string
	post *runbook.Post

	ctx  context.Context // of the work at hand
	desk *desk
	err  error // of a call that could not be made

	known  []runbook.Finding // of the last look
	looked bool
	fixes  int64 // how many repairs the group had made then
	looks  int64 // how often the group had begun to look anew: what was known before is forgotten
}

// pause is how many seconds pass before a second look, which is about these seconds only.
const pause = 15

func newRuleMind(g *group, name string) *ruleMind {
	r := &ruleMind{g: g, name: name}
	r.post = runbook.NewPost(g.site, name, r.say)
	return r
}

// say makes a call, and reports whether it was made.
func (r *ruleMind) say(response string) (string, bool) {
	text, err := r.desk.call(r.ctx, "exec_shell", response)
	if err == nil && text == usedUp {
		err = errUsedUp
	}
	if err != nil {
		r.err = err
	}
	return text, err == nil
}

// Work implements Mind.
func (r *ruleMind) Work(ctx context.Context, m Message, before []string, d *desk) (answer, error) {
	r.ctx, r.desk, r.err = ctx, d, nil
	if now := r.g.looks.Load(); r.looks != now {
		r.looks, r.looked, r.known, r.post = now, false, nil, runbook.NewPost(r.g.site, r.name, r.say)
	}
	var a answer
	switch m.Want {
	case measure, carry, reach:
		if m.Order != nil {
			a = r.operate(m)
		}
	case told:
		a.Text = "Thank you."
		return a, nil
	case repair:
		a = r.repair(m, before)
	case confirm:
		a = r.confirm(m)
	case again:
		r.lookLately(m, fmt.Sprintf("What was seen may have been of a moment. I look at %s again.", r.name))
		a = r.report()
	default:
		if !r.fresh() {
			r.look(r.intent(m, before), 0, 0)
		}
		a = r.report()
		if r.err == nil && (m.Kind == record.HeartbeatMessage || m.Kind == record.NoteMessage) && r.g.mode == peers {
			a = r.followUp(m, a)
		}
	}
	if errors.Is(r.err, errUsedUp) {
		r.post = runbook.NewPost(r.g.site, r.name, r.say)
		var end answer
		end.Findings, end.Text = r.known, "I cannot go on: our calls are used up."
		return end, nil
	}
	return a, r.err
}

// intent is what is said before a look.
func (r *ruleMind) intent(m Message, before []string) string {
	switch {
	case len(before) > 0:
		return fmt.Sprintf("I was interrupted in this. I look at %s again, to see where I was.", r.name)
	case m.Kind == record.NoteMessage:
		return fmt.Sprintf("%s asks about %s. I look at its pods, configuration, log and requests.", m.From, r.name)
	case m.Kind == record.HeartbeatMessage:
		return fmt.Sprintf("Is %s as it should be? Its pods, configuration, log, ports and requests.", r.name)
	}
	return fmt.Sprintf("The manager asks about %s. I look at its pods, configuration, log, ports and requests, "+
		"and how "+
		"those next to it fare.", r.name)
}

// fresh reports whether the last look still holds: nobody has repaired anything since.
func (r *ruleMind) fresh() bool {
	return r.looked && r.fixes == r.g.repairs.Load() && r.g.mode == peers
}

func (r *ruleMind) look(thought string, wait, lately int) {
	r.fixes = r.g.repairs.Load()
	known := r.post.Check(thought, wait, lately)
	if r.looked = r.err == nil; r.looked {
		r.known = known
	}
}

// lookLately looks at the last seconds only. Whoever is first in a round waits for them to pass.
func (r *ruleMind) lookLately(m Message, thought string) {
	wait := 0
	if r.g.paused.Swap(int64(m.Round)) != int64(m.Round) || m.Round == 0 {
		wait = pause
		thought += fmt.Sprintf(" I let %d seconds pass first, so that what was before does not count.", pause)
	}
	r.look(thought, wait, pause)
}

// own are the findings of the service itself, the most telling alone if it explains the others, and next those of
// the services that it calls.
func (r *ruleMind) own() (own, next []runbook.Finding) {
	for _, f := range r.known {
		switch {
		case f.Component == r.name:
			own = append(own, f)
		case slices.Contains(r.g.site.Calls[r.name], f.Component): // Those who call it may be ill because of it.
			next = append(next, f)
		}
	}
	return runbook.Conclude(own, r.g.site.DependsOn), runbook.Conclude(next, r.g.site.DependsOn)
}

// report says what the last look showed.
func (r *ruleMind) report() answer {
	var a answer
	own, next := r.own()
	a.Findings = append(slices.Clone(own), next...)
	a.issue = len(own) > 0
	ready, all := r.post.Ready()
	var text []string
	switch {
	case len(own) == 0 && all == 0:
		text = append(text, fmt.Sprintf("I see nothing wrong with %s, but no pod of it either.", r.name))
	case len(own) == 0 && len(next) > 0:
		text = append(text, fmt.Sprintf("%s itself is well: %d of %d pods ready, its ports "+
			"answer.", r.name, ready, all))
	case len(own) == 0:
		text = append(text, fmt.Sprintf("%s is well: %d of %d pods ready, its ports answer, nothing is slow and "+
			"nothing fails.", r.name, ready, all))
	case own[0].Certain():
		text = append(text, fmt.Sprintf("It is with me: %s.", inPerson(own[0].Evidence, "my", "me")))
	case own[0].Remedy():
		text = append(text, fmt.Sprintf("I am in trouble: %s.", inPerson(own[0].Evidence, "my", "me")))
	default:
		text = append(text, fmt.Sprintf("%s itself looks as it should (%d of %d pods ready), but %s.", r.name, ready,
			all, own[0].Evidence))
	}
	for _, f := range next {
		text = append(text, fmt.Sprintf("Of those I call, %s does not look well: %s.", f.Component, f.Evidence))
	}
	a.Text = strings.Join(text, " ")
	return a
}

// inPerson tells evidence as one tells it of oneself or to whom it is about. What a log says stays as it is.
func inPerson(evidence, whose, whom string) string {
	words, said, quoted := strings.Cut(evidence, `"`)
	words = strings.NewReplacer(" its ", " "+whose+" ", " to it ", " to "+whom+" ").Replace(" " + words)[1:]
	if quoted {
		words += `"` + said
	}
	return words
}

// repair sets right what the manager says is to be.
func (r *ruleMind) repair(m Message, before []string) (a answer) {
	find := m.Findings
	if len(before) > 0 || !r.looked { // Somebody else found it, or had begun.
		r.look(r.intent(m, before), 0, 0)
		own, _ := r.own()
		find = own
		if r.err == nil && len(own) == 0 {
			a = r.report()
			a.Text = "That is done. " + a.Text
			return a
		}
	}
	var did []string
	for _, f := range find {
		if r.err == nil {
			did = append(did, r.post.Repair(f)...)
		}
	}
	did = deeds(did)
	if len(did) == 0 {
		a = r.report()
		a.Text = "I have no remedy for that. " + a.Text
		return a
	}
	r.g.repairs.Add(1)
	a.Text = "Done: " + strings.Join(did, " ")
	return a
}

// deeds are the sentences that tell of something done rather than asked.
func deeds(list []string) (did []string) {
	for _, s := range list {
		if strings.HasPrefix(s, "I ") || strings.Contains(s, " I ") {
			did = append(did, s)
		}
	}
	return did
}

// confirm looks whether a repair elsewhere helped, and has pods start at once that gave up meanwhile.
func (r *ruleMind) confirm(m Message) answer {
	r.lookLately(m, fmt.Sprintf("Does that show at %s?", r.name))
	if r.err != nil {
		return answer{}
	}
	if r.post.StartAnew("Pods of mine gave up while they waited. I have them start at once rather than wait for " +
		"Kubernetes' back-off.") {
		r.look(fmt.Sprintf("And now? Does %s work again?", r.name), 0, pause)
	}
	return r.report()
}

// followUp is what an equal among equals does with what it found: it sets right what is its own, if it may, and asks
// those whom it depends on.
func (r *ruleMind) followUp(m Message, a answer) answer {
	own, next := r.own()
	if len(own) > 0 && own[0].Settled() {
		if r.g.mayRepair() {
			var did []string
			for _, f := range own {
				did = append(did, r.post.Repair(f)...)
			}
			if did = deeds(did); len(did) > 0 && r.err == nil {
				r.g.repairs.Add(1)
				a.Text += " " + strings.Join(did, " ")
			}
		}
		return a
	}
	asked := 0
	ask := func(to, text string) {
		if to == m.From || !slices.Contains(r.g.site.Calls[r.name], to) || asked == 4 {
			return
		}
		if err := r.desk.tell(r.ctx, to, text, Message{}); err == nil {
			asked++
		}
	}
	for _, f := range next {
		ask(f.Component, fmt.Sprintf("I depend on you, and from here it looks as if something is wrong: %s. Is it "+
			"you, or somebody behind you?", inPerson(f.Evidence, "your", "you")))
	}
	if asked == 0 && len(own) > 0 {
		for _, s := range r.g.site.Calls[r.name] {
			ask(s, fmt.Sprintf("I see that %s, and find no reason for it here. Is anything wrong on your side?",
				own[0].Evidence))
		}
	}
	return a
}

// mayRepair reports whether the run asks to put things right.
func (g *group) mayRepair() bool { return g.Task == problem.Mitigation || g.Task == problem.OnCall }
