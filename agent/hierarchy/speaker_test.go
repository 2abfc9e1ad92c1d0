package hierarchy

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// did reports whether a step of a run has some text.
func (r *run) did(text string) bool { return strings.Contains(strings.Join(r.steps, "\n"), text) }

// What equals are asked for reaches whom it concerns, and nobody else is troubled.
func TestModelPeersCarryOut(t *testing.T) {
	b := operationOf("Scale the Deployment cart to 3 replicas.", nil)
	b.Model = model(t, cast{
		"cart": func(said string) string {
			switch {
			case strings.Contains(said, "TASK:\n") && strings.Contains(said, "> Scale the Deployment cart to 3 replicas."):
				return `exec_shell("kubectl scale deployment/cart --replicas=3 -n n")`
			case strings.Contains(said, "(no output)"):
				return `report_result("3 of 3 pods are ready.")`
			}
			return `report_result("I was asked for nothing.")`
		},
		speakerName: func(said string) string {
			if strings.Contains(said, "RESPONSE from cart:\n> 3 of 3 pods are ready.") {
				return `submit()`
			}
			return `submit({"done": "no"})`
		},
	})
	r := play(t, options{mode: peers}, b, shop)
	if r.err != nil || len(r.answers) != 1 || r.answers[0] != "submit()" || !r.did("kubectl scale deployment/cart") {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
	if len(r.messages) != 2 {
		t.Error(r.talk())
	}
}

// Equals who are to put right what is wrong know that, are told so until it is done, and those who felt it confirm it.
func TestModelPeersMend(t *testing.T) {
	var mu sync.Mutex
	knows := map[string]bool{}
	r := play(t, options{mode: peers}, agent.Briefing{Task: problem.Mitigation, Model: model(t, cast{
		promptsOfAll: func(prompt string) string {
			mu.Lock()
			defer mu.Unlock()
			if m := whoIsAsked.FindStringSubmatch(prompt); m != nil {
				knows[m[1]] = strings.Contains(prompt, "> If anything is wrong with the application, put it right")
			}
			return ""
		},
		"front": func(said string) string {
			switch {
			case strings.Contains(said, "HEARTBEAT:"):
				return `report_result("cart does not answer me.", "ISSUE")`
			case strings.Contains(said, "NOTE from cart:"):
				return `report_result("Thank you.")`
			case strings.Contains(said, "well again"):
				return `report_result("All requests are answered again.")`
			case strings.Contains(said, "TASK:"):
				return `send_message("cart", "You do not answer me. Please put that right.")`
			}
			return `report_result("I have told cart.", "ISSUE")`
		},
		"cart": func(said string) string {
			if strings.Contains(said, "NOTE from front:") {
				return `exec_shell("kubectl rollout undo deployment/cart -n n")`
			}
			return `report_result("I have gone back to the version before.")`
		},
		speakerName: func(said string) string {
			if strings.Contains(said, "All requests are answered again.") {
				return `submit()`
			}
			return `submit("too early")`
		},
	})}, shop)
	if r.err != nil || !cmp.Equal(r.answers, []string{"submit()"}) || !r.did("kubectl rollout undo deployment/cart") {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
	if !knows["front"] || !knows["cart"] {
		t.Errorf("who knows what all are asked: %v", knows)
	}
}

// Where objectives hold at all times, equals begin by their heartbeats, and go on until the objectives are met if they
// are to see to that.
func TestModelPeersHeartbeat(t *testing.T) {
	for _, tt := range []struct{ level, submit string }{{"L3", `submit({"slo": "broken"})`}, {"L5", "submit()"}} {
		t.Run(tt.level, func(t *testing.T) {
			fixes := tt.level == "L5"
			b := operationOf(asked(tt.level, "cart"))
			b.Model = model(t, cast{
				"cart": func(said string) string {
					switch {
					case strings.Contains(said, "HEARTBEAT:"):
						return `report_result("I take 300 ms.", "ISSUE")`
					case strings.Contains(said, "well again"):
						return `report_result("I take 20 ms, and it stays so.")`
					case strings.Contains(said, "TASK:"):
						return `exec_shell("kubectl scale deployment/cart --replicas=2 -n n")`
					}
					return `report_result("I take 20 ms.")`
				},
				speakerName: func(said string) string {
					if !fixes && strings.Contains(said, "ISSUE from cart:\n> I take 300 ms.") ||
						fixes && strings.Contains(said, "and it stays so") {
						return tt.submit
					}
					return `submit({"slo": "unknown"})`
				},
			})
			r := play(t, options{mode: peers}, b, shop)
			if r.err != nil || len(r.answers) != 1 || r.answers[0] != tt.submit || r.did("kubectl scale") != fixes {
				t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
			}
			checkHeartbeats(t, tt.level, peers, r)
			first := r.messages[0]
			if !strings.Contains(first.Text, "99 of 100 requests answered within 200ms") ||
				strings.Contains(first.Text, "put it right") != fixes {
				t.Errorf("the heartbeat says %q", first.Text)
			}
		})
	}
}

// A speaker may have those go on whom it is about, but not for ever.
func TestModelPeersGoOn(t *testing.T) {
	refused := ""
	r := play(t, options{mode: peers}, agent.Briefing{Task: problem.Detection, Model: model(t, cast{
		"front": func(said string) string {
			if strings.Contains(said, "TASK:\n> Is it still so?") {
				return `report_result("It is still so.")`
			}
			return `report_result("Some requests are slow.")`
		},
		speakerName: func(said string) string {
			switch {
			case strings.Contains(said, "Some requests are slow."):
				return `ask_again(" ")`
			case strings.Contains(said, "has no words"):
				refused = said
				return `ask_again("Is it still so?")`
			case strings.Contains(said, "RESPONSE from front:\n> It is still so."):
				return `submit("Yes")`
			}
			return `submit("No")`
		},
	})}, shop)
	if r.err != nil || len(r.answers) != 1 || r.answers[0] != `submit("Yes")` || refused == "" {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
	r = play(t, options{mode: peers}, agent.Briefing{Task: problem.Detection, Model: model(t, cast{
		speakerName: func(string) string { return `ask_again("And now?")` },
	})}, shop)
	if r.err == nil || !strings.Contains(r.err.Error(), "the speaker has taken") || len(r.messages) > 2*maxRounds {
		t.Errorf("%v\n%s", r.err, r.talk())
	}
	for _, m := range r.messages {
		if m.To == "front" && m.Kind == record.TaskMessage && m.From != speakerName {
			t.Errorf("sent %+v", m)
		}
	}
}

// Equals do not put anything right in an incident before that is asked, and then they do, whoever has told of what.
func TestModelPeersInIncident(t *testing.T) {
	r := play(t, options{mode: peers}, agent.Briefing{Task: problem.Incident, Model: model(t, cast{
		"front": func(said string) string {
			switch {
			case strings.Contains(said, "well again"):
				return `report_result("All requests are answered again.")`
			case strings.Contains(said, "TASK:"):
				return `exec_shell("kubectl rollout undo deployment/front -n n")`
			}
			return `report_result("I see errors.")`
		},
		speakerName: func(said string) string {
			if strings.Contains(said, "All requests are answered again.") {
				return `submit()`
			}
			return `submit("Yes")`
		},
	})}, shop)
	if r.err != nil || !cmp.Equal(r.answers, []string{`submit("Yes")`, "submit()"}) || len(r.steps) != 4 ||
		!strings.Contains(r.steps[2], "kubectl rollout undo") {
		t.Errorf("%v: %v %q\n%s", r.err, r.answers, r.steps, r.talk())
	}
}
