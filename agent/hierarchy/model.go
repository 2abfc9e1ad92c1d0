package hierarchy

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

//go:embed prompts
var files embed.FS

var (
	maintainerPrompt = conversation.MustRead(files, "prompts/maintainer.md", "hierarchy/maintainer")
	managerPrompt    = conversation.MustRead(files, "prompts/manager.md", "hierarchy/manager")
	speakerPrompt    = conversation.MustRead(files, "prompts/speaker.md", "hierarchy/speaker")
	singlePrompt     = conversation.MustRead(files, "prompts/single.md", "hierarchy/single")
)

// Bounds of what models may do.
const (
	maxTurns      = 40 // of a maintainer, for one message
	maxChiefTurns = 60 // of a manager, on call from one answer to the next
)

// What members can do beside the actions of the lab.
var (
	reportResult = &aci.Action{
		Name: "report_result", Doc: "Report what came of the message that you are dealing with. That ends your " +
			"work on it.",
		Params: []aci.Param{
			{Name: "message", Type: "str", Doc: "The report.", Required: true},
			{
				Name: "kind", Type: "str", Enum: []string{"RESPONSE", "ISSUE"}, Default: "RESPONSE",
				Doc: "ISSUE if something is wrong, with your service or as far as you can see from it, and is not " +
					"put right.",
			},
		}, Returns: "nothing",
	}
	sendMessage = &aci.Action{
		Name: "send_message", Doc: "Ask or tell a colleague something. The answer comes as a message of its own, " +
			"later.",
		Params: []aci.Param{
			{Name: "to", Type: "str", Doc: "The service that the colleague looks after.", Required: true},
			{Name: "message", Type: "str", Doc: "What you want to say.", Required: true},
		}, Returns: "str: whether it was sent.",
	}
	assignTasks = &aci.Action{
		Name: "assign_tasks", Doc: "Hand out the tasks of a round, and wait for the answers.",
		Params: []aci.Param{
			{Name: "components", Type: "list[str]", Doc: "The services whose maintainers get a task.", Required: true},
			{Name: "messages", Type: "list[str]", Doc: "The tasks, in the same order.", Required: true},
		}, Returns: "str: what the maintainers answer.",
	}
)

// briefing is what the model of a member is told.
func (g *group) briefing() agent.Briefing {
	b := g.Briefing
	b.Note = g.note
	return b
}

// roster says who is there, and what each calls.
func (g *group) roster() string {
	var list []string
	for _, s := range g.services() {
		text := s
		if c := g.site.Calls[s]; len(c) > 0 {
			text += " (calls " + strings.Join(c, ", ") + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// actions are those of the lab that a maintainer has: all but the submission.
func (g *group) actions() []*aci.Action {
	return slices.DeleteFunc(slices.Clone(g.Actions), func(a *aci.Action) bool { return a.Kind == aci.Submit })
}

// submission is the action that hands in the answer.
func (g *group) submission() []*aci.Action {
	return slices.DeleteFunc(slices.Clone(g.Actions), func(a *aci.Action) bool { return a.Kind != aci.Submit })
}

// modelMind is the mind of a maintainer that has a chat model. What it has talked about stays with it.
type modelMind struct {
	g       *group
	name    string
	talk    *conversation.Conversation
	actions []*aci.Action
}

func (g *group) newModelMind(service string) (*modelMind, error) {
	var callers []string
	for _, s := range g.services() {
		if slices.Contains(g.site.Calls[s], service) {
			callers = append(callers, s)
		}
	}
	m := &modelMind{g: g, name: service, actions: append(g.actions(), reportResult)}
	boss := "your manager"
	if g.mode == peers {
		m.actions, boss = append(m.actions, sendMessage), "your speaker and your colleagues"
	}
	p := maintainerPrompt.With("service", service, "application", g.summary(), "calls", orNobody(g.site.Calls[service]),
		"callers", orNobody(callers), "members", strings.Join(g.services(), ", "), "boss", boss)
	var err error
	m.talk, err = conversation.New(g.briefing(), p, m.actions, false)
	return m, err
}

// summary is what is said of the application, and to equals of what they are there for.
func (g *group) summary() string {
	text := fmt.Sprintf("The application is in the namespace %s.", g.Namespace)
	if goal := g.goal(); g.mode == peers && goal != "" {
		text += "\n\nNobody leads you and your colleagues. This is your task, of all of you together; do your part " +
			"of it unasked, and a speaker hands in what you report:\n" + quoted(goal)
	}
	return text
}

// Work implements Mind.
func (m *modelMind) Work(ctx context.Context, msg Message, before []string, d *desk) (answer, error) {
	observation := heading(msg) + "\n" + quoted(msg.Text)
	if len(before) > 0 {
		observation += "\n\nYou were interrupted in this. What you had done before:\n" +
			quoted(strings.Join(before, "\n"))
	}
	for range maxTurns {
		reply, err := m.talk.Next(ctx, observation)
		if err != nil {
			return answer{}, err
		}
		m.g.floor.moves.Add(1)
		call, err := aci.Parse(reply.Text)
		if err != nil {
			d.turn("nothing")
			observation = err.Error()
			continue
		}
		switch known := has(m.actions, call.Name); {
		case call.Name == reportResult.Name:
			return reported(words(call, 0, "message"), strings.EqualFold(words(call, 1, "kind"), "ISSUE")), nil
		case !known:
			d.turn("nothing")
			observation = fmt.Sprintf("You cannot call %s. When you are done, call report_result.", clip(call.Name, 60))
		case call.Name == sendMessage.Name:
			observation = "sent"
			if err := d.tell(ctx, words(call, 0, "to"), words(call, 1, "message"), Message{}); err != nil {
				if !refusal(err) {
					return answer{}, err
				}
				observation = "Not sent: " + err.Error()
			}
		default:
			if observation, err = d.call(ctx, call.Name, reply.Text); err != nil {
				return answer{}, err
			}
		}
	}
	return reported(fmt.Sprintf("I have taken %d turns over this and have not come to an end.", maxTurns), true), nil
}

// has reports whether an action is among some.
func has(list []*aci.Action, name string) bool {
	return slices.ContainsFunc(list, func(a *aci.Action) bool { return a.Name == name })
}

// words is an argument of a call as text.
func words(c *aci.Call, position int, name string) string {
	v, ok := c.Kwargs[name]
	if !ok && position < len(c.Args) {
		v, ok = c.Args[position], true
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// lists is an argument of a call as a list of texts.
func lists(c *aci.Call, position int, name string) (list []string) {
	v, ok := c.Kwargs[name]
	if !ok && position < len(c.Args) {
		v = c.Args[position]
	}
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			list = append(list, fmt.Sprint(x))
		}
	}
	return list
}

// leadByModel has a model be the manager.
func (g *group) leadByModel(ctx context.Context) error {
	actions := append([]*aci.Action{assignTasks}, g.submission()...)
	p := managerPrompt.With("members", g.roster(), "rounds", fmt.Sprint(maxRounds))
	talk, err := conversation.New(g.briefing(), p, actions, false)
	if err != nil {
		return err
	}
	first, err := g.firstBeat(ctx)
	if err != nil {
		return err
	}
	observation := ""
	if len(first) > 0 {
		observation = "You have not asked anybody anything yet; this is what their heartbeats say.\n\n" + joined(first)
	}
	return g.talkItOver(ctx, talk, observation, func(ctx context.Context, response string) (string, error) {
		call, err := aci.Parse(response)
		switch {
		case err != nil:
			g.chief.turn("nothing")
			return err.Error(), nil
		case call.Name == assignTasks.Name:
			return g.chief.assignCall(ctx, call)
		case has(g.submission(), call.Name):
			return g.chief.next(ctx, response)
		}
		g.chief.turn("nothing")
		return fmt.Sprintf("You cannot call %s: you have no access to the cluster, your maintainers have. Hand out "+
			"tasks with assign_tasks.", clip(call.Name, 60)), nil
	})
}

// talkItOver has the model of a chief take its turns until there is nothing left to do. Act does what a reply says, and
// returns what the model is told then.
func (g *group) talkItOver(
	ctx context.Context, talk *conversation.Conversation, observation string,
	act func(ctx context.Context, response string) (string, error),
) error {
	answers := g.answers.Load()
	for n := 1; ; n++ {
		if now := g.answers.Load(); now != answers {
			answers, n = now, 1
		}
		response := unanswered
		switch {
		case n <= maxChiefTurns:
			reply, err := talk.Next(ctx, observation)
			if err != nil {
				return err
			}
			response = reply.Text
		case g.Task != problem.OnCall:
			return fmt.Errorf("the %s has taken %d turns and has not come to an end", g.head, maxChiefTurns)
		}
		g.floor.moves.Add(1)
		var err error
		if observation, err = act(ctx, response); err != nil {
			return err
		}
		if pages := g.floor.paged(); pages != "" {
			observation = aci.AddPages(observation, pages)
		}
	}
}

// firstBeat has those begin by themselves who have objectives that always hold, and returns what they report.
func (g *group) firstBeat(ctx context.Context) ([]Message, error) {
	if g.order == nil || !g.order.Standing {
		return nil, nil
	}
	who, text, with := g.regular()
	return g.chief.ring(ctx, who, text, with)
}

// assignCall hands out what a model wants to be done, and returns what it is told then.
func (c *chief) assignCall(ctx context.Context, call *aci.Call) (string, error) {
	to, texts := lists(call, 0, "components"), lists(call, 1, "messages")
	var tasks []Task
	for i, t := range to {
		if i < len(texts) {
			tasks = append(tasks, Task{To: t, Text: texts[i]})
		}
	}
	err := c.check(tasks)
	if err == nil && len(to) != len(texts) {
		err = fmt.Errorf("there are %d components and %d messages; each component gets one "+
			"message", len(to), len(texts))
	}
	if err != nil {
		c.turn("nothing")
		return "Nothing was handed out: " + err.Error(), nil
	}
	list, err := c.assign(ctx, tasks)
	if err != nil {
		return "", err
	}
	return joined(append(list, c.unsolicited()...)) + c.g.room(), nil
}

// room says how many calls the group has left, if they are counted.
func (g *group) room() string {
	left := g.floor.left()
	if left >= 1<<20 {
		return ""
	}
	return fmt.Sprintf("\n\nThe group has %d calls left, the submission among them.", left)
}

// aloneByModel has a model be the only maintainer.
func (g *group) aloneByModel(ctx context.Context) error {
	service := "the whole application"
	if g.service != "" {
		service = "the service " + g.service
	}
	talk, err := conversation.New(g.briefing(), singlePrompt.With("service", service), g.Actions, false)
	if err != nil {
		return err
	}
	observation := ""
	for {
		reply, err := talk.Next(ctx, observation)
		if err != nil {
			return err
		}
		does := "nothing"
		if call, err := aci.Parse(reply.Text); err == nil {
			does = call.Name
		}
		g.note(record.TurnEvent, record.Turn{Who: g.alone(), Does: does})
		if observation, err = g.floor.call(ctx, g.alone(), reply.Text); err != nil {
			return err
		}
		if pages := g.floor.paged(); pages != "" {
			observation = aci.AddPages(observation, pages)
		}
	}
}
