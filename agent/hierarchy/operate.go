package hierarchy

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/record"
)

// maxReaches is how many times objectives are worked on before the chief gives up.
const maxReaches = 5

// operation is what the chief does in an operation.
type operation struct {
	*ruleChief
	order *order
	state map[string]*reading
	said  map[string]string
	// trouble is what those say who give no numbers.
	trouble map[string]bool
	// puzzled are those who have missed objectives for no reason that shows.
	puzzled map[string]bool
}

// operate does what an operation asks for.
func (r *ruleChief) operate(ctx context.Context) error {
	o := r.g.order
	if o == nil { // Then it is at least to be well.
		if err := unlessRounds(r.find(ctx)); err != nil {
			return err
		}
		if err := unlessRounds(r.mend(ctx)); err != nil {
			return err
		}
		return r.hand(ctx, "I cannot read out of the task what exactly is wanted; we have put right what was "+
			"wrong.", nil)
	}
	op := &operation{
		ruleChief: r, order: o, state: map[string]*reading{}, said: map[string]string{}, puzzled: map[string]bool{},
		trouble: map[string]bool{},
	}
	if len(o.Steps) > 0 {
		if err := op.carry(ctx); err != nil {
			return err
		}
	}
	var err error
	switch {
	case o.Fix:
		err = op.reach(ctx)
	case o.Objectives != (objectives{}) || len(o.Report) > 0:
		err = op.watch(ctx)
	}
	if err != nil {
		return err
	}
	thought, report := op.answer()
	return r.hand(ctx, thought, report)
}

// hand submits.
func (r *ruleChief) hand(ctx context.Context, thought string, report map[string]any) error {
	args := []any{}
	if len(report) > 0 {
		args = append(args, report)
	}
	_, err := r.crew.submit(ctx, "Thought: "+thought+"\n\nAction:\n"+agent.Call("submit", args...))
	return err
}

// round hands out tasks and takes the readings in.
func (op *operation) round(ctx context.Context, tasks []Task) error {
	room := op.g.floor.left() - reserve
	if room <= 0 || len(tasks) == 0 {
		return nil
	}
	answers, err := op.crew.assign(ctx, tasks[:min(len(tasks), room)])
	if err != nil {
		return unlessRounds(err)
	}
	op.hear(append(answers, op.crew.unsolicited()...))
	return nil
}

func (op *operation) hear(list []Message) {
	for _, m := range list {
		if m.Reading != nil {
			op.state[m.From] = m.Reading
		}
		if m.Trouble != nil {
			op.trouble[m.From] = *m.Trouble
		}
		if !m.Silent {
			op.said[m.From] = m.Text
		}
	}
}

// carry has the owners carry out the steps.
func (op *operation) carry(ctx context.Context) error {
	var tasks []Task
	for _, s := range op.owners() {
		var words []string
		for _, st := range op.order.Steps {
			if st.Service == s {
				words = append(words, st.String())
			}
		}
		if len(words) > 0 {
			tasks = append(tasks, Task{
				To: s, Message: Message{Want: carry, Order: op.order},
				Text: "Please " + strings.Join(words, ", and ") + ". Tell me when it is in effect.",
			})
		}
	}
	return op.round(ctx, tasks)
}

// String is a step as one asks for it.
func (s step) String() string {
	switch s.Kind {
	case createStep:
		return fmt.Sprintf("create your Deployment; its manifest is in the ConfigMap %s, under %s", s.Name, s.Value)
	case envStep:
		return fmt.Sprintf("set %s to %s", s.Name, s.Value)
	case imageStep:
		return "go back to version " + s.Value
	case restartStep:
		return "restart all of your pods, without an outage"
	case scaleStep:
		return fmt.Sprintf("scale to %s replicas", s.Value)
	case rotateStep:
		return fmt.Sprintf("give %s another login, in the Secret %s, and let nobody in with the old one", s.Value,
			s.Name)
	case blockStep:
		return fmt.Sprintf("find out who in the namespace %s floods you, and keep that one out, and nobody else",
			s.Name)
	case addStep:
		return fmt.Sprintf("have a service %s made that is like you, with %d replicas of %s, on port %d", s.Name,
			s.Replicas, s.Value, s.Port)
	}
	return "set up autoscaling, with bounds that make sense for what you use"
}

// owners are the maintainers whom the order is about.
func (op *operation) owners() []string {
	list := op.ownedBy(op.order.Services)
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// ask has the owners measure. What is asked for all the time is begun by their heartbeats, without anybody asking.
func (op *operation) ask(ctx context.Context, first bool, pause int) error {
	each := op.order.each()
	if first && op.order.Standing {
		_, text, with := op.g.regular()
		list, err := op.crew.beat(ctx, op.owners(), text, with)
		op.hear(list)
		return err
	}
	var tasks []Task
	for _, s := range op.owners() {
		text := "How are you doing by the numbers?"
		r := op.state[s]
		switch o := each.Objectives; {
		case !first && (r == nil || len(r.missed(o)) > 0):
			text = "Please look once more, over the next seconds: is it still so?"
		case !first && op.order.Fix && op.g.repairs.Load() > 0:
			text = "Well done. Please look once more: does it stay so?"
		case !first && r.rising():
			text = "Where does that lead? Please look again in a while."
		case !first:
			text = "Good. Trouble may take a while to show, so please look once more, over the next seconds."
		case o != (objectives{}):
			text = fmt.Sprintf("How are you doing by the numbers? What is wanted is %s.", o)
		}
		tasks = append(tasks, Task{To: s, Text: text, Message: Message{Want: measure, Order: each, Pause: pause}})
	}
	return op.round(ctx, tasks)
}

// missed are the services that do not meet what is asked, in order.
func (op *operation) missed() (names []string) {
	o := op.order.each().Objectives
	if op.order.Objectives.Sum && op.sum() < op.order.Objectives.P99.Seconds() {
		o.P99 = 0
	}
	for _, s := range op.owners() {
		r := op.state[s]
		trouble, told := op.trouble[s]
		if r != nil && len(r.missed(o)) > 0 || r == nil && (trouble || !told) {
			names = append(names, s)
		}
	}
	return names
}

// sum is what the P99 of all come to.
func (op *operation) sum() (seconds float64) {
	for _, s := range op.owners() {
		r := op.state[s]
		if r == nil || r.P99 < 0 {
			return math.Inf(1)
		}
		seconds += r.P99
	}
	return seconds
}

// rising reports whether ever more requests come to somebody.
func (op *operation) rising() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(op.state)), (*reading).rising)
}

// More looks: what is seen once may be of a moment, and trouble may take a while to show.
const (
	fewLooks  = 3  // of what looks well
	manyLooks = 10 // while ever more comes
)

// watch looks until it is clear whether objectives are met.
func (op *operation) watch(ctx context.Context) error {
	if err := op.ask(ctx, true, 0); err != nil {
		return err
	}
	if !op.order.Standing {
		return nil
	}
	bad := 0
	for look := 1; ; look++ {
		if len(op.missed()) > 0 {
			bad++
		} else {
			bad = 0
		}
		why, _ := op.cause()
		enough := bad >= 2 && why != unclear || bad == 0 && look >= fewLooks && !op.rising() || look >= manyLooks
		if enough || op.g.floor.left() <= reserve+len(op.owners()) {
			return nil
		}
		if err := op.ask(ctx, false, settling); err != nil {
			return err
		}
	}
}

// reach has those who miss objectives do something about it, until all meet them, and for more than a moment.
func (op *operation) reach(ctx context.Context) error {
	if err := op.ask(ctx, true, 0); err != nil {
		return err
	}
	good, tries := 0, 0
	for look := 1; look <= manyLooks && op.g.floor.left() > reserve+len(op.owners()); look++ {
		tasks := op.remedies()
		if len(tasks) > 0 && tries < maxReaches {
			good = 0
			tries++
			if err := op.round(ctx, tasks); err != nil {
				return err
			}
		} else if len(op.missed()) == 0 {
			good++
		}
		if good >= 2 && !op.rising() {
			return nil
		}
		if err := op.ask(ctx, false, settling); err != nil {
			return err
		}
	}
	return nil
}

// remedies are tasks for those who miss objectives and can do something about it. Who waits for another whose cause is
// known has nothing to do.
func (op *operation) remedies() (tasks []Task) {
	o := op.order.each()
	missed := op.missed()
	for _, s := range op.owners() {
		r := op.state[s]
		if r == nil || !slices.Contains(missed, s) {
			if r == nil && op.trouble[s] {
				tasks = append(tasks, Task{
					To: s, Message: Message{Want: reach, Order: o},
					Text: fmt.Sprintf("Do what it takes so that you have %s, wait until it has taken effect, and "+
						"tell me what you "+
						"did.", o.Objectives),
				})
			}
			if r != nil && r.threatened(o.Objectives) {
				tasks = append(tasks, Task{
					To: s, Message: Message{Want: reach, Order: o, Reading: r},
					Text: "At this pace you will miss what is wanted before long. Get ahead of it: enough pods for " +
						"what is to come.",
				})
			}
			continue
		}
		why, whom := r.cause(o.Objectives)
		if why == waiting && slices.Contains(missed, whom) || why == "" {
			continue
		}
		if why == unclear && !op.puzzled[s] { // It may be of a moment.
			op.puzzled[s] = true
			continue
		}
		text := fmt.Sprintf("%s: that is not what we promise. Do what it takes: %s. Wait until it has taken effect, "+
			"and "+
			"tell me what you did.", capital(strings.Join(r.missed(o.Objectives), ", ")), advice(why))
		if why == waiting {
			if op.state[whom] == nil && contains(op.ownedBy([]string{whom}), whom) {
				s, r = whom, nil
				text = fmt.Sprintf("Others wait for you. See to it that you have %s, and tell me what you "+
					"did.", o.Objectives)
			} else {
				continue
			}
		}
		tasks = append(tasks, Task{To: s, Text: text, Message: Message{Want: reach, Order: o, Reading: r}})
	}
	return tasks
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// advice is what the chief says about a cause.
func advice(why string) string {
	switch why {
	case podsDown:
		return "your pods must get ready, somewhere else if that is what it takes"
	case stressed:
		return "get away from what burns your CPU"
	}
	return "enough pods for what comes, with some room"
}

// cause is why objectives are missed, all told: what is wrong with somebody's pods or CPU explains that others wait, or
// have more to do.
func (op *operation) cause() (why string, where []string) {
	o := op.order.each().Objectives
	for _, kind := range []string{podsDown, stressed, demand, waiting, unclear} {
		for _, s := range op.owners() {
			r := op.state[s]
			if r == nil {
				continue
			}
			if w, whom := r.cause(o); w == kind {
				if w == waiting {
					s = whom
				}
				where = append(where, s)
			}
		}
		if len(where) > 0 {
			return kind, where
		}
	}
	return "", nil
}

// answer is what the chief concludes, and the report.
func (op *operation) answer() (thought string, report map[string]any) {
	missed := op.missed()
	why, where := op.cause()
	switch {
	case len(missed) == 0 && op.order.Objectives != (objectives{}):
		thought = fmt.Sprintf("%s: that is what is asked of %s, and so it is.", capital(op.order.Objectives.String()),
			strings.Join(op.owners(), " and "))
	case len(op.state) == 0 && len(missed) == 0:
		thought = "It is done: " + strings.Join(op.words(), " ")
	case len(missed) == 0:
		thought = "I have the numbers that were asked for."
	case op.order.Fix:
		thought = fmt.Sprintf("We have done what we can, but what is asked is still missed by %s.",
			strings.Join(missed, " and "))
	default:
		thought = fmt.Sprintf("The objectives are missed by %s. %s.", strings.Join(missed, " and "+
			""), verdict(why, where))
	}
	report = map[string]any{}
	for _, e := range op.order.Report {
		if v := op.value(e, len(missed) == 0, why); v != nil {
			report[e.Key] = v
		}
	}
	return thought, report
}

// verdict is a cause in the words of the chief.
func verdict(why string, where []string) string {
	who := strings.Join(where, " and ")
	switch why {
	case podsDown:
		return "Pods of " + who + " do not get ready"
	case stressed:
		return "Something burns the CPU of " + who + " that is not its own work"
	case demand:
		return "More comes to " + who + " than its pods can do"
	case waiting:
		return "Others wait for " + who
	}
	return "Nobody sees why"
}

// words are what was said last, by whom.
func (op *operation) words() (list []string) {
	for _, s := range sortedKeys(op.said) {
		list = append(list, op.said[s])
	}
	return list
}

// meanings are words that a report may have for whether all is well, or why not.
var meanings = map[string][]string{
	"good":   {"yes", "met", "healthy", "normal", "ok", "true"},
	"bad":    {"no", "broken", "unhealthy", "abnormal", "violated", "false"},
	podsDown: {"pod", "crash", "down", "failure"},
	stressed: {"stress", "contention", "noisy", "burn"},
	demand:   {"traffic", "load", "demand", "requests", "users"},
}

// value is what a key of the report is to tell; nil if that is not known.
func (op *operation) value(e entry, well bool, why string) any {
	r := op.state[e.Of]
	switch {
	case e.Is == "cpu" && r != nil && r.CPU >= 0:
		return math.Round(1000 * r.CPU)
	case e.Is == "p99" && r != nil && r.P99 >= 0:
		return math.Round(1000 * r.P99)
	case len(e.Words) == 0:
		return nil
	}
	kinds := []string{why, map[bool]string{true: "good", false: "bad"}[well]}
	for _, kind := range kinds {
		for _, w := range e.Words {
			for _, stem := range meanings[kind] {
				if w == stem || len(stem) > 3 && strings.Contains(w, stem) || strings.HasPrefix(w, stem+" ") {
					return w
				}
			}
		}
	}
	return nil
}

// beat has maintainers begin by themselves.
func (c *chief) beat(ctx context.Context, names []string, text string, with Message) ([]Message, error) {
	return c.ring(ctx, names, text, with)
}

// beat has the only maintainer look at one after the other.
func (s *soloist) beat(ctx context.Context, names []string, text string, with Message) ([]Message, error) {
	var tasks []Task
	for _, n := range names {
		with.Kind = record.HeartbeatMessage
		tasks = append(tasks, Task{To: n, Text: text, Message: with})
	}
	return s.assign(ctx, tasks)
}
