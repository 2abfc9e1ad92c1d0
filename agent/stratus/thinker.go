package stratus

import (
	"embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

//go:embed prompts
var files embed.FS

var (
	diagnosisPrompt  = conversation.MustRead(files, "prompts/diagnosis.md", "stratus/diagnosis")
	mitigationPrompt = conversation.MustRead(files, "prompts/mitigation.md", "stratus/mitigation")
	reflectionPrompt = conversation.MustRead(files, "prompts/reflection.md", "stratus/reflection")
)

const (
	// maxLooks is how many steps a diagnosis may take before the model has to conclude, and maxActs how many a
	// mitigation.
	maxLooks = 12
	maxActs  = 12
	// maxLearnt is how much of a text is carried on, in bytes.
	maxLearnt = 4000
)

// thinker plans with a model. Each agent has a conversation of its own; what one knows goes to the next in words.
type thinker struct {
	m         *machine
	pages     string // of the pager, if it is on call
	diagnosis string
	lessons   []string
	last      []string // calls of the last try, with what came of them
	blamed    []string // services at fault, if the last try or else the diagnosis named any
}

// converse begins a conversation in which {known} in the prompt is what others have found out.
func (t *thinker) converse(p *conversation.Prompt, known string) (*conversation.Conversation, bool) {
	b := t.m.briefing
	if t.pages != "" {
		b.Description += "\n\nThe pager calls:\n" + t.pages
	}
	b.Description += "\n\n" + known
	var actions []*aci.Action
	for _, a := range b.Actions {
		switch a.Name {
		case "begin", "commit", "abort", "undo": // Those are the machine's.
		default:
			actions = append(actions, a)
		}
	}
	c, err := conversation.New(agent.Briefing{
		Description: b.Description, Instructions: b.Instructions, Model: b.Model, Note: b.Note,
	}, p, actions, false)
	if err != nil {
		t.m.Fail(err)
		return nil, false
	}
	return c, true
}

// turn asks the model for its next response.
func (t *thinker) turn(c *conversation.Conversation, observation string) (response string, call *aci.Call, ok bool) {
	reply, err := c.Next(t.m.Context(), observation)
	if err != nil {
		t.m.Fail(err)
		return "", nil, false
	}
	call, err = aci.Parse(reply.Text)
	if err != nil {
		call = nil
	}
	return reply.Text, call, true
}

// diagnose begins with the call graph and ends with the model's conclusion in words. It only reads.
func (t *thinker) diagnose() {
	if task := t.m.briefing.Task; task != problem.Mitigation && task != problem.OnCall {
		return // The answer is the diagnosis.
	}
	graph := t.m.Call("Who calls whom?", "get_topology", t.m.briefing.Namespace)
	c, ok := t.converse(diagnosisPrompt, "Who calls whom:\n"+graph)
	if !ok {
		return
	}
	observation := "Begin."
	for n := 1; n <= maxLooks && !t.m.Closed(); n++ {
		response, call, ok := t.turn(c, observation)
		if !ok {
			return
		}
		switch {
		case call == nil || call.Name == "submit":
			t.blame(call)
			if d := strings.TrimSpace(response); d != "" {
				t.diagnosis = bound(d)
				return
			}
			observation = "Make a call, or write what is wrong."
		case writes(call):
			observation = "Refused: the diagnosis only reads. Others mend."
		default:
			observation = t.m.Do(response)
		}
		if n == maxLooks-1 {
			observation += "\nConclude now: write what is wrong and where, without a call."
		}
	}
}

// answer has the model answer questions that change nothing.
func (t *thinker) answer() problem.Task {
	c, ok := t.converse(diagnosisPrompt, "")
	if !ok {
		return ""
	}
	observation := aci.NextAction
	for !t.m.Closed() && t.m.Left() > 0 {
		response, call, ok := t.turn(c, observation)
		if !ok {
			return ""
		}
		if call != nil && call.Name != "submit" && writes(call) {
			observation = "Refused: this only reads."
			continue
		}
		observation = t.m.Do(response)
		if call != nil && call.Name == "submit" {
			t.diagnosis = bound(t.diagnosis + "\n" + response)
			if next := aci.Asked(observation); next == string(problem.Mitigation) {
				return problem.Mitigation
			}
		}
	}
	return ""
}

func (t *thinker) ready() bool { return true }

// mitigate has the model act until it says that it is done.
func (t *thinker) mitigate() {
	known := "What was found out:\n" + t.diagnosis
	for i, l := range t.lessons {
		known += fmt.Sprintf("\n\nTry %d did not help and was taken back. What was learnt:\n%s", i+1, l)
	}
	c, ok := t.converse(mitigationPrompt, known)
	if !ok {
		return
	}
	t.last = nil
	observation := "Begin."
	for n := 0; n < maxActs && !t.m.Closed() && t.m.Left() > leastLeft; n++ {
		response, call, ok := t.turn(c, observation)
		if !ok || call != nil && call.Name == "submit" {
			t.blame(call)
			return
		}
		if call == nil {
			observation = "No call could be read. Make one; submit() says that you are done."
			continue
		}
		observation = t.m.Do(response)
		t.last = append(t.last, response+"\n"+observation)
	}
}

// blame notes whom a submission names.
func (t *thinker) blame(c *aci.Call) {
	if c == nil || len(c.Args)+len(c.Kwargs) == 0 {
		return
	}
	v := c.Kwargs["services"]
	if len(c.Args) > 0 {
		v = c.Args[0]
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	t.blamed = nil
	for _, v := range list {
		if s, ok := v.(string); ok && s != "" {
			t.blamed = append(t.blamed, s)
		}
	}
}

func (t *thinker) named() []string { return t.blamed }

func (t *thinker) repeat() {
	t.lessons = append(t.lessons, "What it took was refused, for it cannot be taken back. Now it is allowed: do it.")
}

// reflect asks the model what is to be learnt from a try.
func (t *thinker) reflect(complaints []string) {
	if t.m.mode != Validate {
		return
	}
	b := t.m.briefing
	system, user := reflectionPrompt.Fill("description", b.Description, "diagnosis", t.diagnosis,
		"try", bound(strings.Join(t.last, "\n\n")), "complaints", "- "+strings.Join(complaints, "\n- "))
	if b.Note != nil {
		b.Note(record.PromptEvent, reflectionPrompt.Prompt)
	}
	reply, err := b.Model.Chat(t.m.Context(), llm.Request{
		Messages: []llm.Message{{Role: llm.System, Text: system}, {Role: llm.User, Text: user}},
	})
	if err != nil {
		t.m.Fail(err)
		return
	}
	t.lessons = append(t.lessons, bound(strings.TrimSpace(reply.Text)))
}

// bound is the end of a text, which is what it came to.
func bound(text string) string {
	if len(text) <= maxLearnt {
		return text
	}
	return "[...] " + strings.ToValidUTF8(text[len(text)-maxLearnt:], "")
}

// changing finds commands that change something in a cluster, as far as their words tell.
var changing = regexp.MustCompile(`\bkubectl\b[^|;&\n]*\b(apply|create|delete|patch|replace|edit|scale|autoscale|set|` +
	`label|annotate|taint|cordon|uncordon|drain|run|expose|rollout\s+(undo|restart|pause|resume)|exec|attach|cp|` +
	`debug|certificate)\b|\bhelm\b[^|;&\n]*\b(install|upgrade|uninstall|rollback)\b`)

// writes reports whether a call changes something.
func writes(c *aci.Call) bool {
	if c.Name != "exec_shell" {
		return false
	}
	for _, v := range append(c.Args, c.Kwargs["command"]) {
		if s, ok := v.(string); ok && changing.MatchString(s) {
			return true
		}
	}
	return false
}
