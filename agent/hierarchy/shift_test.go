package hierarchy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

const taken = "SubmissionStatus.VALID_SUBMISSION\n\n"

// noPage is what an answer returns if nobody has called, as the lab says it.
const noPage = taken + "There is no page yet. The shift goes on: submit again to wait for one."

// watch is a shift that is played: what the pager says when pages are answered, and what other calls come to.
type watch struct {
	// page is called for the n-th answer, from 1; what it returns is what the pager says, "" if it does not call. It is
	// over when ok is false.
	page   func(n int, answer *aci.Call) (text string, ok bool)
	answer func(*aci.Call) string
	// beside is what the pager says beside a call that is no answer.
	beside func(c *aci.Call) string
}

// play has a group on call, as a session does: there are so many calls from one answer to the next.
func (w watch) play(t *testing.T, o options, b agent.Briefing) *run {
	t.Helper()
	r := &run{}
	var mu sync.Mutex
	b.Note = func(_ string, data any) {
		mu.Lock()
		defer mu.Unlock()
		if m, ok := data.(record.Message); ok {
			r.messages = append(r.messages, m)
		}
	}
	b.Task, b.Namespace, b.Scratch, b.Steps = problem.OnCall, "n", t.TempDir(), 30
	b.Actions, b.Instructions = aci.Actions(string(b.Task)), aci.Instructions(string(b.Task))
	o.heartbeat, o.patience = time.Hour, time.Minute
	g := o.start(b, time.After)
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	observation, since := "", 0
	for {
		var response string
		response, r.err = g.Act(ctx, observation+"\n"+aci.NextAction)
		if r.err != nil {
			return r
		}
		r.steps = append(r.steps, response)
		call, err := aci.Parse(response)
		if since++; since > b.Steps {
			t.Errorf("no answer within %d steps\n%s", b.Steps, r.talk())
			return r
		}
		switch {
		case err != nil:
			observation = err.Error()
		case call.Name == "submit":
			_, text, _ := strings.Cut(response, "```\n")
			r.answers = append(r.answers, strings.TrimSuffix(text, "\n```"))
			page, ok := w.page(len(r.answers), call)
			if !ok {
				return r
			}
			if since, observation = 0, noPage; page != "" {
				observation = taken + page
			}
		default:
			observation = w.answer(call)
			if w.beside != nil {
				if page := w.beside(call); page != "" {
					observation = aci.AddPages(observation, page)
				}
			}
		}
	}
}

// A group by rules does with each page what it does with an incident, as often as the pager calls, whoever works: what
// it tried for one page it tries again for the next, a false alarm leads to nothing, and what stays ill is looked at
// again though nobody calls.
func TestShiftByRules(t *testing.T) {
	for _, m := range []mode{manager, peers, single} {
		t.Run(string(m), func(t *testing.T) {
			w, _, _ := scenario(t, "scaled-to-zero")
			needed, page := w.needed, 0
			begin := func(n int) string {
				page++
				w.changes, w.needed = nil, n
				return fmt.Sprintf("Page %d:\n    12:00:00 critical DeploymentReplicasMissing: Deployment "+
					"n/user-service has had fewer replicas than it wants for more than 30 seconds.", page)
			}
			const incidents = 10 // Each takes several rounds, and there are 12 for one.
			calm, stubborn := 0, 0
			r := watch{
				answer: w.answer,
				page: func(n int, answer *aci.Call) (string, bool) {
					named := len(answer.Args) > 0 && fmt.Sprint(answer.Args[0]) == "[user-service]"
					did := slices.ContainsFunc(w.changes, func(c string) bool { return strings.Contains(c, "scale deployment/user-service") })
					switch {
					case n <= 2: // It waits, and goes on waiting.
						if len(w.changes) > 0 || len(answer.Args) > 0 {
							t.Errorf("before any page it did %v and submitted %v", w.changes, answer.Args)
						}
						if n == 1 {
							return "", true
						}
						return begin(needed), true
					case page <= incidents:
						if !named || !did {
							t.Errorf("page %d: named %v, did %v", page, answer.Args, w.changes)
						}
						if page < incidents {
							return begin(needed), true
						}
						text := begin(0)
						w.changes = []string{"it is well"}
						return text, true
					case calm == 0:
						calm++
						if len(w.changes) != 1 || named {
							t.Errorf("after a false alarm it did %v and submitted %v: %v", w.changes, answer.Args, answer.Context)
						}
						return begin(1000), true
					}
					if stubborn++; stubborn > 4 {
						return "", false
					}
					if back := stubborn <= 1+returns; back != (len(answer.Args) == 2) || back && !did {
						t.Errorf("ill, time %d: submitted %v, did %v", stubborn, answer.Args, w.changes)
					}
					w.changes = nil
					return "", true
				},
			}.play(t, options{mode: m}, agent.Briefing{})
			if r.err != nil {
				t.Errorf("%v\n%s", r.err, r.talk())
			}
			for _, m := range r.messages {
				if m.Kind == record.TaskMessage && strings.Contains(m.Text, "The pager says") && m.To != "user-service" {
					t.Errorf("%s was asked %q", m.To, m.Text)
				}
			}
		})
	}
}

// What has happened and is over is left alone: a container that was killed and is ready again, while nobody feels
// anything.
func TestShiftOver(t *testing.T) {
	w, _, _ := scenario(t, "container-killed")
	w.changes, w.needed = []string{"it is well"}, 0
	well := strings.NewReplacer("0/1     CrashLoopBackOff", "1/1     Running         ", `"ready":false`, `"ready":true`,
		"2026-11-15T12:25:18Z", time.Now().UTC().Format(time.RFC3339))
	for i, f := range w.files {
		if w.files[i].Data = []byte(well.Replace(string(f.Data))); contains([]string{"metrics", "connections", "logs"}, f.Name) {
			w.files[i].Data = nil
		}
	}
	watch{
		answer: w.answer,
		page: func(n int, answer *aci.Call) (string, bool) {
			if n == 1 {
				return "Page 1:\n    12:00:00 a user complains about the shop; nothing more is known.", true
			}
			said := strings.Join(answer.Context, " ")
			if len(w.changes) != 1 || len(answer.Args) > 0 || !strings.Contains(said, "was killed") ||
				!strings.Contains(said, "we leave it alone") {
				t.Errorf("did %v, said %s, submitted %v", w.changes, said, answer.Args)
			}
			return "", false
		},
	}.play(t, options{mode: manager}, agent.Briefing{})
}

// What the pager says beside somebody's call is not taken for what that call came to, and is dealt with before the next
// answer.
func TestShiftPageBeside(t *testing.T) {
	w, _, _ := scenario(t, "scaled-to-zero")
	called := false
	var did []int
	watch{
		answer: w.answer,
		beside: func(*aci.Call) string {
			if called || len(w.changes) < 1 {
				return ""
			}
			called = true
			did, w.changes = append(did, len(w.changes)), nil // It is there again.
			return "Page 2:\n    12:00:00 a user complains about the shop; nothing more is known."
		},
		page: func(n int, answer *aci.Call) (string, bool) {
			if n == 1 {
				return "Page 1:\n    12:00:00 a user complains about the shop; nothing more is known.", true
			}
			if did = append(did, len(w.changes)); len(did) != 2 || did[1] == 0 || len(answer.Args) == 0 {
				t.Errorf("changes %v, submitted %v", did, answer.Args)
			}
			return "", false
		},
	}.play(t, options{mode: manager}, agent.Briefing{})
	if !called {
		t.Error("the pager never called")
	}
}

// onCallCast plays a shift for the models of a group: whoever leads has the database put right, and then says so.
func TestShiftByModel(t *testing.T) {
	const pages = 16 // Each takes a manager two rounds and four turns: there are 12 rounds and 60 turns for one.
	for _, m := range []mode{manager, peers, single} {
		t.Run(string(m), func(t *testing.T) {
			repairs := 0
			lead := func(said string) string {
				switch {
				case strings.Contains(said, "It works again") || strings.Contains(said, "(done)"):
					return `submit(["db"])`
				case strings.Contains(said, "The database is gone"):
					return `assign_tasks(["db"], ["Put that right."])`
				case strings.Contains(said, "Page "):
					return `assign_tasks(["db"], ["The pager calls about you. Why?"])`
				}
				return `submit()`
			}
			c := cast{
				managerName: lead, speakerName: lead,
				"maintainer": func(said string) string {
					if strings.Contains(said, "Page ") {
						return `exec_shell("kubectl rollout undo deployment/db -n n")`
					}
					return lead(said)
				},
				"front": func(said string) string {
					if strings.Contains(said, "The pager calls:") {
						return `report_result("The database is gone.", "ISSUE")`
					}
					if strings.Contains(said, "There is trouble still") {
						return `send_message("db", "Please put that right.")`
					}
					return `report_result("It works again.")`
				},
				"db": func(said string) string {
					switch {
					case strings.Contains(said, "(done)"):
						return `report_result("It works again.")`
					case strings.Contains(said, "ut that right"):
						return `exec_shell("kubectl rollout undo deployment/db -n n")`
					case strings.Contains(said, "well again"):
						return `report_result("It works again.")`
					}
					return `report_result("The database is gone.", "ISSUE")`
				},
			}
			r := watch{
				answer: func(c *aci.Call) string {
					if c.Name == "get_topology" {
						return topology
					}
					repairs++
					return "(done)"
				},
				page: func(n int, answer *aci.Call) (string, bool) {
					switch { // Every other time it waits once more, without asking the model.
					case n%2 == 1:
						return "", n < 2*pages
					case n > 2 && len(answer.Args) > 0:
						t.Errorf("answer %d to no page names %v", n, answer.Args)
					}
					return fmt.Sprintf("Page %d:\n    12:00:00 critical n/db fails.", n/2), true
				},
			}.play(t, options{mode: m}, agent.Briefing{Model: model(t, c)})
			if r.err != nil || len(r.answers) < 2*pages || repairs < pages-1 {
				t.Errorf("%v: %d answers, %d repairs\n%s", r.err, len(r.answers), repairs, r.talk())
			}
			if n := len(slices.DeleteFunc(slices.Clone(r.answers), func(a string) bool { return a != `submit(["db"])` })); n < pages-1 {
				t.Errorf("%d answers name the database: %v", n, r.answers)
			}
		})
	}
}

// A model that comes to no end with a page has it answered in its place, and gets the next one. What its maintainers
// waste is not what the answer costs.
func TestShiftWithoutEnd(t *testing.T) {
	for _, m := range []mode{manager, peers} {
		t.Run(string(m), func(t *testing.T) {
			lead := func(said string) string {
				if strings.Contains(said, "Page 2") {
					return `submit(["cart"])`
				}
				if m == peers {
					return `ask_again("Go on.")`
				}
				return `assign_tasks(["db"], ["Look again."])`
			}
			r := watch{
				answer: shop,
				page: func(n int, _ *aci.Call) (string, bool) {
					return fmt.Sprintf("Page %d:\n    12:00:00 critical n/db fails.", n), n < 4
				},
			}.play(t, options{mode: m}, agent.Briefing{Model: model(t, cast{
				managerName: lead, speakerName: lead,
				"db": func(string) string { return `exec_shell("kubectl get pods")` },
			})})
			if r.err != nil || !slices.Contains(r.answers, `submit(["cart"])`) || !slices.Contains(r.answers, "submit()") {
				t.Errorf("%v: %v", r.err, r.answers)
			}
		})
	}
}
