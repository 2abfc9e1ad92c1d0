package stratus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/problem"
)

const taken = "SubmissionStatus.VALID_SUBMISSION\n\n"

// shift takes an agent on call through pages: begin sets the world for the n-th answer, from 1, and says whether the
// pager calls; it is over when ok is false. Look is told of each answer.
func (w *world) shift(
	t *testing.T, name string, begin func(n int) (calls, ok bool), look func(n int, answer *aci.Call),
) {
	t.Helper()
	b := agent.Briefing{
		Task: problem.OnCall, Namespace: "n", Steps: 60, Actions: []*aci.Action{{Name: "begin"}},
	}
	for _, e := range Entries() {
		if e.Name != name {
			continue
		}
		a, err := e.New(b)
		if err != nil {
			t.Fatal(err)
		}
		defer a.(interface{ Close() error }).Close()
		observation, since := "", 0
		for answers := 0; ; {
			response, err := a.Act(t.Context(), observation+"\n"+aci.NextAction)
			if err != nil {
				t.Fatal(err)
			}
			call, err := aci.Parse(response)
			if err != nil {
				t.Fatal(err)
			}
			if since++; since > b.Steps {
				t.Fatalf("%d steps without an answer", since)
			}
			if call.Name != "submit" {
				if observation = w.do(call); w.pages != "" {
					observation, w.pages = aci.AddPages(observation, w.pages), ""
				}
				continue
			}
			answers++
			look(answers, call)
			w.did = nil
			calls, ok := begin(answers)
			if !ok {
				return
			}
			since, observation = 0, taken+"There is no page yet."
			if calls {
				observation = taken + fmt.Sprintf("Page %d:\n    12:00:00 critical it fails", answers)
			}
		}
	}
	t.Fatal("no agent " + name)
}

// On call the machine waits, deals with each page in transactions of its own as often as the pager calls, keeps what
// helped and takes back what did not, names who was at fault, and comes back to what it could not mend.
func TestShift(t *testing.T) {
	for _, tt := range []struct {
		name, mode, want string // want is what is done about a page
		set              func(*world)
		args             string
		back             bool
	}{
		{"helps", "stratus", "begin scale commit", func(w *world) { w.helps = true }, "[[user-service]]", false},
		{"helps, naively", "stratus:naive", "scale", func(w *world) { w.helps = true }, "[[user-service]]", false},
		{"helps, once", "stratus:none", "scale", func(w *world) { w.helps = true }, "[[user-service]]", false},
		{"the commit finds it worse, once", "stratus", "begin scale commit begin scale commit", func(w *world) {
			w.helps, w.worse = true, true
		}, "", false},
		{"does not help", "stratus", "begin scale abort begin scale abort", func(*world) {}, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			const pages = 8
			w.shift(t, tt.mode, func(n int) (bool, bool) {
				if n == 1 {
					return false, true
				}
				w.fixed, w.open = false, false
				tt.set(w)
				return n <= pages, n <= pages+3
			}, func(n int, answer *aci.Call) {
				did := strings.Join(w.did, " ")
				switch {
				case n <= 2: // Nobody has called.
					if did != "" || len(answer.Args) > 0 {
						t.Errorf("without a page it did %s and submitted %v", did, answer.Args)
					}
				case n <= pages+1, tt.back && n <= pages+1+returns:
					if did != tt.want || tt.args != "" && fmt.Sprint(answer.Args) != tt.args {
						t.Errorf("answer %d: did %s, want %s; submitted %v", n, did, tt.want, answer.Args)
					}
					if tt.back != (len(answer.Args) == 2) {
						t.Errorf("answer %d: submitted %v", n, answer.Args)
					}
				default:
					if did != "" {
						t.Errorf("answer %d: did %s though nobody called", n, did)
					}
				}
			})
		})
	}
}

// When the pager calls in the middle of a try, what speaks against the try may be of that: it is taken back, ruled out
// by nothing, and all is looked at afresh.
func TestShiftPageInATry(t *testing.T) {
	w := newWorld(t)
	w.helps, w.worse = true, true
	w.called = func(text string) {
		if text == "commit" && w.pages == "" {
			w.called = nil
			w.pages = "Page 9:\n    12:00:00 critical another one"
		}
	}
	w.shift(t, "stratus", func(n int) (bool, bool) { return n == 1, n < 2 }, func(n int, answer *aci.Call) {
		if n == 1 {
			return
		}
		if did := strings.Join(w.did, " "); did != "begin scale commit begin scale commit" {
			t.Errorf("did %s", did)
		}
		if got := fmt.Sprint(answer.Args); got != "[[user-service]]" {
			t.Errorf("submitted %s", got)
		}
	})
}

// By a model: each page is diagnosed, mended and validated with what the pager says, and whom the model names is
// submitted.
func TestShiftByModel(t *testing.T) {
	w := newWorld(t)
	w.helps = true
	pages := 0
	var prompts []string
	r := agenttest.Case{
		Entry: Entries()[0], Task: problem.OnCall, Steps: 400,
		Play: func(_ int, r llmtest.Request) llmtest.Answer {
			system, last := r.Messages[0].Text, r.Messages[len(r.Messages)-1].Text
			switch {
			case strings.Contains(system, "You diagnose"):
				prompts = append(prompts, system)
				return llmtest.Answer{Text: "user-service has no pods."}
			case strings.HasPrefix(last, "done"):
				return llmtest.Answer{Text: "```\nsubmit([\"user-service\"])\n```"}
			}
			return llmtest.Answer{Text: "```\nexec_shell(\"kubectl scale deployment/user-service -n n --replicas=1\")\n```"}
		},
		World: func(c *aci.Call) string {
			if c.Name != "submit" {
				return w.do(c)
			}
			if pages++; pages > 1 && fmt.Sprint(c.Args) != "[[user-service]]" {
				t.Errorf("page %d: submitted %v: %v", pages, c.Args, c.Context)
			}
			w.fixed = false
			return taken + fmt.Sprintf("Page %d:\n    12:00:00 critical n/user-service fails", pages)
		},
	}.Go(t)
	if pages < 5 || len(prompts) < 5 {
		t.Errorf("%v: %d pages, %d diagnoses", r.Err, pages, len(prompts))
	}
	for i, p := range prompts {
		if !strings.Contains(p, fmt.Sprintf("The pager calls:\nPage %d:", i+1)) {
			t.Errorf("diagnosis %d was told %q", i, p)
		}
	}
}
