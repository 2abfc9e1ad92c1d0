package hierarchy

import (
	"context"
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// planner is who decides what the members do.
func (g *group) planner() string {
	switch {
	case g.maintainer != nil:
		return g.maintainer.Name
	case g.Model != nil:
		return byModel
	}
	return byRules
}

// newMind makes the mind of a maintainer.
func (g *group) newMind(service string) (Mind, error) {
	switch {
	case g.mind != nil:
		return g.mind(g, service)
	case g.guests[service] != "":
		return g.newRemoteMind(service, g.guests[service]), nil
	case g.maintainer != nil:
		return &agentMind{g: g, name: service}, nil
	case g.Model != nil:
		return g.newModelMind(service)
	}
	return newRuleMind(g, service), nil
}

// leadManager has a manager lead.
func (g *group) leadManager(ctx context.Context) error {
	if g.Model != nil {
		return g.leadByModel(ctx)
	}
	return g.newRuleChief(g.chief).lead(ctx)
}

// alone is the name of a maintainer who works alone.
func (g *group) alone() string {
	if g.service != "" {
		return g.service
	}
	return "maintainer"
}

// leadSingle has one maintainer do it all.
func (g *group) leadSingle(ctx context.Context) error {
	if g.Model != nil {
		return g.aloneByModel(ctx)
	}
	if g.maintainer != nil {
		return fmt.Errorf("a single maintainer that is %s is --agent %s", g.maintainer.Name, g.maintainer.Name)
	}
	return g.newRuleChief(&soloist{g: g, minds: map[string]*ruleMind{}}).lead(ctx)
}

// soloist is a maintainer who does all tasks itself, one after the other.
type soloist struct {
	g     *group
	minds map[string]*ruleMind
	turns int
}

func (s *soloist) assign(ctx context.Context, tasks []Task) (answers []Message, err error) {
	s.turns++
	for _, t := range tasks {
		mind := s.minds[t.To]
		if mind == nil {
			mind = newRuleMind(s.g, t.To)
			s.minds[t.To] = mind
		}
		m := t.Message
		m.Round = s.turns
		a, err := mind.Work(ctx, m, nil, &desk{g: s.g, name: s.g.alone(), log: func(string) {}})
		if err != nil {
			return nil, err
		}
		a.From = t.To
		answers = append(answers, a.Message)
	}
	return answers, nil
}

func (s *soloist) unsolicited() []Message { return nil }

func (s *soloist) submit(ctx context.Context, response string) (string, error) {
	s.g.note(record.TurnEvent, record.Turn{Who: s.g.alone(), Does: "submit"})
	return s.g.handIn(ctx, response)
}

// settle waits until nobody has anything left to do, or nobody does anything, and returns what was reported.
func (c *chief) settle(ctx context.Context) (list []Message, err error) {
	for {
		quiet := c.g.bus.settled()
		if quiet == nil {
			return append(list, c.unsolicited()...), nil
		}
		select {
		case d := <-c.mail:
			if m, ok := c.take(d); ok {
				list = append(list, m)
			}
		case <-quiet:
		case <-c.g.after(c.g.patience):
			if !c.moved() {
				return append(list, c.unsolicited()...), nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ring has some maintainers begin by themselves, and waits until the talk is over.
func (c *chief) ring(ctx context.Context, names []string, text string, with Message) ([]Message, error) {
	c.round++
	c.moves = c.g.floor.moves.Load()
	for _, s := range names {
		m := with
		h := heartbeat(-c.round, s, text)
		m.ID, m.Message = h.ID, h.Message
		m.Round = c.round
		if err := c.g.bus.send(ctx, m); err != nil {
			return nil, err
		}
	}
	return c.settle(ctx)
}

// frontText begins a talk among equals.
const frontText = "Look whether your service is as it should be, and whether requests to it are answered as they " +
	"should " +
	"be. If not, find out with your colleagues where that comes from."

// leadPeers has the maintainers work it out among themselves. The chief only rings at the front door, waits until
// they are done, and hands in what they say.
func (g *group) leadPeers(ctx context.Context) error {
	if g.Model != nil {
		return g.speakByModel(ctx)
	}
	return g.newRuleChief(g.chief).lead(ctx)
}

// listen has equals begin to talk, and takes in what they report when they have nothing left to say.
func (r *ruleChief) listen(ctx context.Context, names []string, text string, w want) error {
	room := r.g.floor.left() - reserve
	if room <= 0 || len(names) == 0 || r.g.chief.rounds() >= maxRounds {
		return nil
	}
	list, err := r.g.chief.ring(ctx, names[:min(room, len(names))], text, Message{Want: w})
	for _, m := range list {
		r.reports[m.From] = m.Findings
	}
	return err
}

// findAmongPeers has equals find out what is wrong.
func (r *ruleChief) findAmongPeers(ctx context.Context) error {
	who := append(union(r.g.entries(), r.called()), r.first()...)
	if err := r.listen(ctx, who, calling(r.pages), look); err != nil {
		return err
	}
	if !r.enough() && r.sweeps() {
		var rest []string
		for _, s := range r.g.services() {
			if !r.asked(s) {
				rest = append(rest, s)
			}
		}
		rest = rest[:max(0, min(len(rest), r.g.floor.left()-r.after()))]
		if err := r.listen(ctx, rest, heartbeatText, look); err != nil {
			return err
		}
	}
	if c := r.causes(); len(c) == 0 || !c[0].Settled() {
		return r.listen(ctx, r.troubled(), "Was that of a moment? Look once more, over the next seconds.", again)
	}
	return nil
}

// troubled are those who reported something, or those through whom users come.
func (r *ruleChief) troubled() (names []string) {
	for _, from := range sortedKeys(r.reports) {
		if len(r.reports[from]) > 0 {
			names = append(names, from)
		}
	}
	if len(names) == 0 {
		names = r.g.entries()
	}
	return names
}

// mendAmongPeers has those who found a cause with themselves put it right, as far as they have not, until all who
// felt it are well.
func (r *ruleChief) mendAmongPeers(ctx context.Context) error {
	for range maxRepairs {
		var owners []string
		for _, f := range r.causes() {
			key := f.Component + " " + f.Kind
			if f.Remedy() && !r.tried[key] && slices.Contains(r.g.services(), f.Component) {
				r.tried[key] = true
				owners = append(owners, f.Component)
			}
		}
		before := r.troubled()
		if r.g.Task == problem.Incident || r.fixedNothing(owners) {
			const text = "It is with you. Put it right, and wait until that has taken effect."
			if err := r.listen(ctx, owners, text, repair); err != nil {
				return err
			}
		}
		who := union(before, r.g.entries())
		r.hear()
		if err := r.listen(ctx, who, "Look once more: is it well again on your side?", confirm); err != nil {
			return err
		}
		if r.well = len(r.causes()) == 0; r.well || len(owners) == 0 {
			return nil
		}
	}
	return nil
}

// fixedNothing reports whether nobody has repaired anything yet although somebody should.
func (r *ruleChief) fixedNothing(owners []string) bool {
	return len(owners) > 0 && r.g.repairs.Load() == r.repaired
}
