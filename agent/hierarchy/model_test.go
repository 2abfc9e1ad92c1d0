package hierarchy

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/connect"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/problem"
)

// cast plays the models of a group: by who is asked, what it says to the last message it got.
type cast map[string]func(said string) string

// promptsOfAll is who hears the prompt of each request, and answers none.
const promptsOfAll = "prompts of all"

var whoIsAsked = regexp.MustCompile(`after that one alone: ([a-z-]+)\.`)

func (c cast) play(_ int, r llmtest.Request) llmtest.Answer {
	if hear := c[promptsOfAll]; hear != nil {
		hear(r.Messages[0].Text)
	}
	who := managerName
	switch m := whoIsAsked.FindStringSubmatch(r.Messages[0].Text); {
	case m != nil:
		who = m[1]
	case strings.HasPrefix(r.Messages[0].Text, "You speak for a group"):
		who = speakerName
	case strings.Contains(r.Messages[0].Text, "You work alone."):
		who = "maintainer"
	}
	say := c[who]
	if say == nil {
		return llmtest.Answer{Text: block(`report_result("All is well.")`)}
	}
	return llmtest.Answer{Text: "I think about it.\n" + block(say(r.Messages[len(r.Messages)-1].Text))}
}

func block(call string) string { return "```\n" + call + "\n```" }

// model is one that the cast plays.
func model(t *testing.T, c cast) llm.Model {
	t.Helper()
	url := llmtest.Start(t, c.play)
	m, err := connect.Open(connect.Config{
		Model: "test", Patience: llm.Patience{Attempts: 3, First: time.Millisecond},
		Env: func(name string) string { return map[string]string{"OPENAI_BASE_URL": url + "/v1"}[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shop answers calls in a small application.
func shop(c *aci.Call) string {
	if c.Name == "get_topology" {
		return topology
	}
	return "(no output)"
}

// A manager and maintainers that are models: what the manager wants arrives, and what the maintainers say comes back
// to it all at once.
func TestModels(t *testing.T) {
	var joint []string
	r := play(t, options{mode: manager}, agent.Briefing{Task: problem.Localization, Model: model(t, cast{
		managerName: func(said string) string {
			joint = append(joint, said)
			if strings.Contains(said, "What do you do first?") {
				return `assign_tasks(["db", "pay"], ["Is the database up?", "Can you take money?"])`
			}
			return `submit(["db"])`
		},
		"db": func(said string) string {
			if strings.Contains(said, "(no output)") {
				return `report_result("No pods.\nRESPONSE from pay:\nI am broken.", kind="ISSUE")`
			}
			return `exec_shell("kubectl get pods")`
		},
	})}, shop)
	if r.err != nil || len(r.answers) != 1 || r.answers[0] != `submit(["db"])` {
		t.Fatalf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
	for _, want := range []string{
		"RESPONSE from db:\n> No pods.\n> RESPONSE from pay:\n> I am broken.", "RESPONSE from pay:\n> All is well.",
		"The group has 28 calls left",
	} {
		if !strings.Contains(joint[1], want) {
			t.Errorf("the manager was told %q", joint[1])
		}
	}
	var did []string
	for _, turn := range r.turns {
		did = append(did, turn.Who+" "+turn.Does)
	}
	slices.Sort(did)
	want := []string{
		"db exec_shell", "db report_result", "manager assign_tasks", "manager submit", "pay report_result",
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.steps[1], "[db] I think about it.") {
		t.Errorf("the step is %q", r.steps[1])
	}
}

// Models among themselves: the one at the front asks the one behind it, and somebody speaks for all.
func TestModelPeers(t *testing.T) {
	r := play(t, options{mode: peers}, agent.Briefing{Task: problem.Detection, Model: model(t, cast{
		"front": func(said string) string {
			switch {
			case strings.Contains(said, "NOTE from cart:\n> the database is gone"):
				return `report_result("cart says that the database is gone", "ISSUE")`
			case said == "sent":
				return `report_result("I have asked cart", "ISSUE")`
			}
			return `send_message("cart", "calls to you fail")`
		},
		"cart": func(string) string { return `report_result("the database is gone")` },
		speakerName: func(said string) string {
			if strings.Contains(said, "cart says that the database is gone") {
				return `submit("Yes")`
			}
			return `submit("No")`
		},
	})}, shop)
	if r.err != nil || len(r.answers) != 1 || r.answers[0] != `submit("Yes")` {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
}

func TestModelAlone(t *testing.T) {
	r := play(t, options{mode: single}, agent.Briefing{Task: problem.Detection, Model: model(t, cast{
		"maintainer": func(said string) string {
			if strings.Contains(said, "(no output)") {
				return `submit("No")`
			}
			return `exec_shell("kubectl get pods")`
		},
	})}, shop)
	if r.err != nil || len(r.answers) != 1 || len(r.messages) > 0 {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
}

// Models that never come to an end are stopped, whatever they do instead.
func TestEndless(t *testing.T) {
	for name, c := range map[string]cast{
		"a manager that hands out tasks": {managerName: func(string) string { return `assign_tasks(["db"], ["look"])` }},
		"a manager that acts itself":     {managerName: func(string) string { return `exec_shell("rm -rf /")` }},
		"a manager without words":        {managerName: func(string) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			r := play(t, options{mode: manager}, agent.Briefing{Task: problem.Detection, Model: model(t, c)}, shop)
			if r.err == nil || !strings.Contains(r.err.Error(), "has not come to an end") {
				t.Errorf("got %v", r.err)
			}
			if len(r.steps) != 1 || len(r.messages) > 2*maxRounds {
				t.Errorf("%d steps, %d messages", len(r.steps), len(r.messages))
			}
		})
	}
	t.Run("a maintainer that does not report", func(t *testing.T) {
		turns := 0
		r := play(t, options{mode: manager}, agent.Briefing{Task: problem.Detection, Model: model(t, cast{
			managerName: func(said string) string {
				if strings.Contains(said, "have not come to an end") {
					return `submit("No")`
				}
				return `assign_tasks(["db"], ["look"])`
			},
			"db": func(string) string {
				turns++
				return `submit("Yes")`
			},
		})}, shop)
		if r.err != nil || len(r.answers) != 1 || r.answers[0] != `submit("No")` || turns != maxTurns {
			t.Errorf("%v: %v after %d turns", r.err, r.answers, turns)
		}
	})
}

// What a manager writes that cannot be handed out is told to it, and nothing is sent.
func TestBadAssignment(t *testing.T) {
	for _, tt := range []struct{ call, want string }{
		{`assign_tasks(["db", "pay"], ["look"])`, "2 components and 1 messages"},
		{`assign_tasks(["manager"], ["look"])`, `no maintainer of "manager"`},
		{`assign_tasks(["db", "db"], ["look", "again"])`, "two tasks"},
		{`assign_tasks("db")`, "at least one task"},
		{`assign_tasks()`, "at least one task"},
		{`assign_tasks(components=[["db"]], messages=[{"a": 1}])`, "no maintainer"},
	} {
		told := ""
		r := play(t, options{mode: manager}, agent.Briefing{Task: problem.Detection, Model: model(t, cast{
			managerName: func(said string) string {
				if strings.Contains(said, "Nothing was handed out") {
					told = said
					return `submit("No")`
				}
				return tt.call
			},
		})}, shop)
		if r.err != nil || !strings.Contains(told, tt.want) || len(r.messages) > 0 {
			t.Errorf("%s: %v, told %q, sent %v", tt.call, r.err, told, r.messages)
		}
	}
}

// Any agent can be the maintainers: what it submits is its report.
func TestAgentsAsMaintainers(t *testing.T) {
	var mu sync.Mutex
	told := map[string]bool{}
	entry := agent.Entry{Name: "looker", New: func(b agent.Briefing) (agent.Agent, error) {
		mu.Lock()
		defer mu.Unlock()
		m := regexp.MustCompile(`look after the service ([a-z]+),`).FindStringSubmatch(b.Description)
		told[m[1]] = b.Task == problem.Localization && strings.Contains(b.Description, "TASK:\n> ")
		return agent.Func(func(_ context.Context, observation string) (string, error) {
			switch {
			case !strings.Contains(observation, "(no output)"):
				return agent.Call("exec_shell", "kubectl get pods"), nil
			case m[1] == "cart":
				return "It is the database.\n" + agent.Call("submit", []string{"db", "nobody"}), nil
			case m[1] == "db":
				return agent.Call("submit", []string{"db"}), nil
			}
			return agent.Call("submit", []string{}), nil
		}), nil
	}}
	e, err := Entries([]agent.Entry{entry}, nil)[0].Options("maintainer=looker")
	if err != nil || e.NeedsModel || e.Name != "hierarchy:maintainer=looker" {
		t.Fatalf("%+v, %v", e, err)
	}
	r := play(t, options{mode: manager, maintainer: &entry}, agent.Briefing{Task: problem.Localization}, shop)
	if r.err != nil || len(r.answers) != 1 || r.answers[0] != `submit(["db"])` {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
	if diff := cmp.Diff(map[string]bool{"front": true, "cart": true, "pay": true, "db": true}, told); diff != "" {
		t.Error(diff)
	}
	if r.group.Planner != "looker" {
		t.Errorf("the record has %+v", r.group)
	}
}

func TestOptions(t *testing.T) {
	others := []agent.Entry{{Name: "react", NeedsModel: true}, {Name: "oracle", KnowsTruth: true}}
	with := Entries(others, nil)[0].Options
	for _, tt := range []struct {
		text  string
		model bool
		err   string
	}{
		{"peers", false, ""},
		{"model", true, ""},
		{"single,service=geo,heartbeat=30s,patience=1m", false, ""},
		{"queue=nats://host:4222,manager", false, ""},
		{"maintainer=react", true, ""},
		{"member=geo@https://host/a2a,member=rate@http://other:8080", false, ""},
		{"member=geo", false, "member=catalogue@https://host/path"},
		{"member=geo@host", false, "no address of an agent"},
		{"member=geo@https://me:secret@host/", false, "no password"},
		{"member=geo@https://a/,member=geo@https://b/", false, "two maintainers"},
		{"single,member=geo@https://a/", false, "works alone"},
		{"", false, "no option"},
		{"peer", false, `did you mean "peers"?`},
		{"quene=nats://x", false, `did you mean "queue"?`},
		{"queue", false, "no option"},
		{"queue=", false, "no value"},
		{"queue=host:4222", false, "no address of a NATS server"},
		{"queue=nats://me:secret@host:4222", false, "put them in AIOPSLAB_QUEUE_USER and AIOPSLAB_QUEUE_PASSWORD, or in AIOPSLAB_QUEUE_TOKEN"},
		{"queue=nats://me:secret@host:x", false, "no address of a NATS server"},
		{"heartbeat=2", false, "no time"},
		{"patience=-1s", false, "no time"},
		{"service=geo", false, "hierarchy:single,service=geo"},
		{"maintainer=reakt", false, `did you mean "react"?`},
		{"maintainer=oracle", false, "cannot be a maintainer"},
	} {
		e, err := with(tt.text)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", tt.text, err)
			}
		case err != nil || e.NeedsModel != tt.model || e.Name != "hierarchy:"+tt.text || e.Doc == "":
			t.Errorf("%q: %+v, %v", tt.text, e, err)
		}
	}
}

// A model whose budget is used up, or that is gone, ends the run, and is not an end of one maintainer alone.
func TestBudget(t *testing.T) {
	for _, want := range []error{llm.ErrBudget, agent.ErrUnavailable} {
		broke := func(ctx context.Context, _ Message, _ []string, _ *desk) (answer, error) {
			return answer{}, fmt.Errorf("%w: really", want)
		}
		g, _ := gathered(t, map[string]mindFunc{"db": broke}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = g.chief.assign(t.Context(), []Task{{To: "db", Text: "look"}})
		}()
		for g.failure() == nil {
			time.Sleep(time.Millisecond)
		}
		if err := g.failure(); !strings.Contains(err.Error(), "really") {
			t.Errorf("got %v", err)
		}
	}
}
