package session

import (
	"slices"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// groupUse is what a record says of an agent that is several.
type groupUse struct {
	group    *record.Group
	messages []record.Message
	turns    map[string]int // of each member
}

func (u *groupUse) add(e record.Event) error {
	switch e.Kind {
	case record.GroupEvent:
		u.group = new(record.Group)
		return e.Decode(u.group)
	case record.MessageEvent:
		var m record.Message
		err := e.Decode(&m)
		u.messages = append(u.messages, m)
		return err
	}
	var t record.Turn
	err := e.Decode(&t)
	if u.turns == nil {
		u.turns = map[string]int{}
	}
	u.turns[t.Who]++
	return err
}

// addTo adds how a group worked to the results of its run.
func (u *groupUse) addTo(res grade.Result, answer problem.Answer) {
	if u.group == nil {
		return
	}
	rounds := map[int][]string{} // who got a task
	last := 0
	for _, m := range u.messages {
		if last = max(last, m.Round); m.Kind == record.TaskMessage {
			rounds[m.Round] = append(rounds[m.Round], m.To)
		}
	}
	res["mode"], res["planner"], res["members"] = u.group.Mode, u.group.Planner, len(u.group.Members)
	res["rounds"], res["messages"], res["turns"] = last, len(u.messages), u.turns
	for _, m := range u.group.Members {
		if m.Role == record.ManagerRole {
			res["manager"] = m.Name
		}
	}
	if len(rounds) == 0 || len(answer.Components) == 0 {
		return
	}
	right := 0
	for _, to := range rounds {
		if slices.ContainsFunc(to, func(name string) bool { return u.leads(name, answer.Components) }) {
			right++
		}
	}
	res["assignment_accuracy"] = float64(right) / float64(len(rounds))
}

// about is where the work of a group belongs: where the fault is, or to the services that an operation is about.
func (t truth) about() problem.Answer {
	a := t.Answer
	if t.Goal != nil && len(a.Components) == 0 {
		for _, s := range t.Goal.Services {
			a.Components = append(a.Components, problem.Component{Name: s})
		}
	}
	return a
}

// leads reports whether a service is at fault, or depends on one that is: whoever looks after it can find that out.
func (u *groupUse) leads(name string, at []problem.Component) bool {
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		if slices.ContainsFunc(at, func(c problem.Component) bool {
			return c.Name == queue[0] || slices.Contains(c.Aliases, queue[0])
		}) {
			return true
		}
		for _, m := range u.group.Members {
			if m.Name != queue[0] {
				continue
			}
			for _, c := range m.Calls {
				if !seen[c] {
					seen[c] = true
					queue = append(queue, c)
				}
			}
		}
	}
	return false
}
