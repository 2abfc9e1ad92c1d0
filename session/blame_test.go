package session

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// What agents of the tests below do beside their answer.
var (
	idle     = aRun{}
	careful  = aRun{doing: Doing{Connections: 3, Sent: 3, Requests: 200, PeakConnections: 1, PeakSent: 1, PeakRequests: 20}}
	flooding = aRun{doing: Doing{Connections: 300, Sent: 300, PeakConnections: 150, PeakSent: 150, Late: 3 * time.Second}}
	// onBusy floods a machine that was busy before it did.
	onBusy  = aRun{doing: Doing{Connections: 300, PeakConnections: 150, LateBefore: 2 * time.Second, Late: 3 * time.Second}}
	hammer  = aRun{doing: Doing{Requests: 5000, PeakRequests: 900}}
	refused = aRun{journal: []guard.Entry{{Verb: "delete", Resource: "pods", Namespace: "test", Status: 403}, {Verb: "patch", Resource: "services", Namespace: "test", Status: 200, DryRun: true}}}
	mending = aRun{journal: []guard.Entry{{Verb: "patch", Resource: "deployments", Namespace: "test", Name: "geo", Status: 200}}}
	// operator is a program of the application that writes while the agent does nothing; byProxy are writes through it.
	operator = aRun{journal: []guard.Entry{operatorPatch, operatorPatch}}
	byProxy  = aRun{journal: []guard.Entry{
		operatorPatch, {Verb: "connect", Resource: "pods", Subresource: "exec", Namespace: "test", Status: 101}, operatorPatch,
	}}
	apiPatch = aRun{journal: []guard.Entry{{Verb: "patch", Resource: "apiservices", Name: "v1.apps", Status: 200}}}
	swarm    = aRun{journal: []guard.Entry{{Verb: "patch", Resource: "deployments", Subresource: "scale", Namespace: "test", Status: 200, After: json.RawMessage(`{"spec":{"replicas":5000}}`)}}}
	job      = aRun{
		journal: []guard.Entry{{Verb: "create", Resource: "jobs", Namespace: "test", Name: "flood", Status: 201}},
		hold:    grade.Holding{For: leftHold, Left: []string{"job test/flood"}},
	}
)

// operatorPatch is a write of a program of the application.
var operatorPatch = guard.Entry{
	Verb: "patch", Resource: "deployments", Namespace: "test", Name: "geo", User: "system:serviceaccount:test:operator", From: "10.244.0.9",
	Status: 200,
}

// TestWhoseItIs has a row for every way in which a run can be in the way of its own judgement: what was
// seen, what the agent did, and whose it is. An agent that did it itself is judged as if nothing
// were in the way.
func TestWhoseItIs(t *testing.T) {
	shows, gone, sick := []grade.Look{sound(0, "geo fails")}, []grade.Look{sound(0)}, []grade.Look{sound(0)}
	sick[0].Load.Total.Success = 0.5
	lost := []grade.Look{sound(0)}
	lost[0].Workloads = nil
	away := make([]grade.Look, 20)
	for i := range away {
		away[i] = sound(time.Duration(i+1)*time.Second, "geo fails (5s ago; "+fault.Away+")")
	}
	busy := func(l []grade.Look) []grade.Look { c := l[0]; c.Late = 2 * time.Second; return []grade.Look{c} }
	starved := func(l []grade.Look) []grade.Look { c := l[0]; c.Waited = 0.6; return []grade.Look{c} }
	const detection, mitigation = problem.Detection, problem.Mitigation
	for _, tt := range []struct {
		name    string
		task    problem.Task
		healthy bool
		agent   aRun
		looks   []grade.Look
		wrong   Class // with a wrong answer
		right   Class // with a right one; of a mitigation there is none
	}{
		{"all as it should be", detection, false, idle, shows, AgentFailed, Solved},
		{"all as it should be, and a flood", detection, false, flooding, shows, AgentFailed, Solved},
		{"busy, but the fault shows", detection, false, idle, busy(shows), AgentFailed, Solved},

		// The fault does not show any more.
		{"gone, untouched", detection, false, idle, gone, Inconclusive, Inconclusive},
		{"gone, refused writes", detection, false, refused, gone, Inconclusive, Inconclusive},
		{"gone, writes of an operator", detection, false, operator, gone, Inconclusive, Inconclusive},
		{"gone, writes through an operator", detection, false, byProxy, gone, AgentFailed, Solved},
		{"gone, a few connections", detection, false, careful, gone, AgentFailed, Solved},
		{"gone, a flood", detection, false, flooding, gone, AgentFailed, Solved},
		{"gone, a flood of the API", detection, false, hammer, gone, AgentFailed, Solved},
		{"gone, a write", detection, false, mending, gone, AgentFailed, Solved},
		{"gone, a Job is left", detection, false, job, gone, AgentFailed, Solved},

		// The healthy system is not well, and the machine is idle.
		{"sick, untouched", detection, true, idle, sick, Inconclusive, Inconclusive},
		{"sick, refused writes", detection, true, refused, sick, Inconclusive, Inconclusive},
		{"sick, a few connections", detection, true, careful, sick, AgentFailed, Solved},
		{"sick, a flood", detection, true, flooding, sick, AgentFailed, Solved},
		{"sick, a flood of the API", detection, true, hammer, sick, AgentFailed, Solved},
		{"sick, a write", detection, true, mending, sick, AgentFailed, Solved},
		{"sick, the API is redirected", detection, true, apiPatch, sick, AgentFailed, Solved},

		// The healthy system is not well, and the machine is busy: an innocent agent never pays for it.
		{"sick and busy, untouched", detection, true, idle, busy(sick), Infra, Infra},
		{"sick and busy, a few connections", detection, true, careful, busy(sick), Infra, Infra},
		{"sick and busy, a flood", detection, true, flooding, busy(sick), AgentFailed, Solved},
		{"sick and busy, a flood of the API", detection, true, hammer, busy(sick), AgentFailed, Solved},
		{"sick and busy, a flood, but it was busy before", detection, true, onBusy, busy(sick), Infra, Infra},
		{"sick and busy, a Job is left", detection, true, job, busy(sick), AgentFailed, Solved},

		// A mitigation that did not succeed.
		{"not mitigated, idle machine", mitigation, false, mending, shows, AgentFailed, ""},
		{"not mitigated, busy machine", mitigation, false, mending, busy(shows), Infra, ""},
		// A fault that comes and goes counts as there for a while; what was seen on a busy machine may be the machine's.
		{"not mitigated, seen on a busy machine", mitigation, false, mending, append(busy(shows), away...), Infra, ""},
		{"not mitigated, seen on a busy machine, a flood", mitigation, false, flooding, append(busy(shows), away...), AgentFailed, ""},
		{"not mitigated, seen on a busy machine, nothing done", mitigation, false, idle, append(busy(shows), away...), AgentFailed, ""},
		{"not mitigated, seen, and away", mitigation, false, mending, append(slices.Clone(shows), away...), AgentFailed, ""},
		// However busy the machine is, who did nothing has mended nothing, and what is gone is gone.
		{"not mitigated, busy machine, nothing done", mitigation, false, idle, busy(shows), AgentFailed, ""},
		{"not mitigated, busy machine, an operator writes", mitigation, false, operator, busy(shows), AgentFailed, ""},
		{"not mitigated, busy machine, a workload is gone", mitigation, false, mending, busy(lost), AgentFailed, ""},
		{"not mitigated, busy machine, a few connections", mitigation, false, careful, busy(shows), Infra, ""},
		{"not mitigated, busy machine, a flood", mitigation, false, flooding, busy(shows), AgentFailed, ""},
		{"not mitigated, busy machine, a flood of the API", mitigation, false, hammer, busy(shows), AgentFailed, ""},
		{"not mitigated, busy machine, a Job is left", mitigation, false, job, busy(shows), AgentFailed, ""},
		{"not mitigated, a flood, but it was busy before", mitigation, false, onBusy, busy(shows), Infra, ""},
		// The fault is gone, but users are not well, and other programs have the processors.
		{"users not well", mitigation, false, mending, sick, AgentFailed, ""},
		{"users not well, starved machine", mitigation, false, mending, starved(sick), Infra, ""},
		{"users not well, starved machine, nothing done", mitigation, false, idle, starved(sick), AgentFailed, ""},
		{"users not well, starved machine, a Job is left", mitigation, false, job, starved(sick), AgentFailed, ""},
		{"users not well, starved machine, a flood", mitigation, false, flooding, starved(sick), AgentFailed, ""},
		{"not mitigated, starved machine", mitigation, false, mending, starved(shows), AgentFailed, ""},
		{"a workload is gone, starved machine", mitigation, false, mending, starved(lost), AgentFailed, ""},

		// Nobody could look.
		{"blind, untouched", detection, false, idle, nil, GraderFailed, GraderFailed},
		{"blind, refused writes", detection, false, refused, nil, GraderFailed, GraderFailed},
		{"blind, a few connections", detection, false, careful, nil, GraderFailed, GraderFailed},
		{"blind, a write to the application", detection, false, mending, nil, GraderFailed, GraderFailed},
		{"blind, the API is redirected", detection, false, apiPatch, nil, AgentFailed, Solved},
		{"blind, a flood", detection, false, flooding, nil, AgentFailed, Solved},
		{"blind, a flood of the API", detection, false, hammer, nil, AgentFailed, Solved},
		{"blind mitigation, untouched", mitigation, false, idle, nil, GraderFailed, ""},
		{"blind mitigation, a write to the application", mitigation, false, mending, nil, GraderFailed, ""},
		{"blind mitigation, the API is redirected", mitigation, false, apiPatch, nil, AgentFailed, ""},
		{"blind mitigation, 5000 pods", mitigation, false, swarm, nil, AgentFailed, ""},
		{"blind mitigation, a Job is left", mitigation, false, job, nil, AgentFailed, ""},
		{"blind mitigation, a flood", mitigation, false, flooding, nil, AgentFailed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			right, wrong := "Yes", "No"
			if tt.healthy {
				right, wrong = wrong, right
			}
			for answer, want := range map[string]Class{right: tt.right, wrong: tt.wrong} {
				if want == "" {
					continue
				}
				run := tt.agent
				run.task, run.healthy, run.answer, run.looks = tt.task, tt.healthy, answer, tt.looks
				if tt.looks == nil {
					run.blind = "no such host"
				}
				rec, err := record.Read(run.write(t))
				if err != nil {
					t.Fatal(err)
				}
				v, err := Grade(rec)
				if err != nil {
					t.Fatal(err)
				}
				if v.Class != want || v.Why == "" || strings.Contains(v.Why, "\n") {
					t.Errorf("%s: got %s: %s\nwant %s", answer, v.Class, v.Why, want)
				}
			}
		})
	}
}

// A report that the objectives of a healthy twin hold is right only if they do: where one was missed before the agent's
// first call, and ever after, that is nobody's failure but the lab's. What may be of a moment, or of the agent's making,
// and what nobody knows, excuses nobody.
func TestObjectives(t *testing.T) {
	goal := func(value string) *problem.Goal {
		return &problem.Goal{
			Level: "L3", Services: []string{"geo"},
			Report:     []problem.Item{{Key: "slo", Value: value, Words: []string{"met", "broken"}}},
			Objectives: []problem.Want{{Service: "geo", Ready: true, CPU: 0.5, P99: 200 * time.Millisecond}},
		}
	}
	state := func(cpu float64, p99 time.Duration) []grade.Operated {
		return []grade.Operated{{Service: "geo", Found: true, Wanted: 1, Ready: 1, CPU: cpu, P99: p99}}
	}
	const quick, slow = 20 * time.Millisecond, 700 * time.Millisecond
	met, busy, late, unknown := state(0.4, quick), state(0.55, quick), state(0.4, slow), state(-1, 0)
	looks := func(states ...[]grade.Operated) (list []grade.Look) {
		for _, s := range states {
			l := sound(0, "geo fails")
			l.Operated = s
			list = append(list, l)
		}
		return list
	}
	report := func(word string) any { return map[string]any{"slo": word} }
	for _, tt := range []struct {
		name   string
		agent  aRun
		faulty bool
		answer any
		found  []grade.Operated
		looks  []grade.Look
		want   Class
	}{
		{"met, and said so", idle, false, report("met"), met, looks(met, met), Solved},
		{"met, and said otherwise", idle, false, report("broken"), met, looks(met, met), AgentFailed},
		{"never met", idle, false, report("met"), busy, looks(busy, busy), Infra},
		{"never met, and said so", careful, false, report("broken"), busy, looks(busy, busy), Infra},
		{"never met, whatever the agent did", mending, false, report("broken"), busy, looks(busy, busy), Infra},
		{"slow at first", idle, false, report("met"), late, looks(met, met), Solved},
		{"slow at first, and said so", idle, false, report("broken"), late, looks(met, met), AgentFailed},
		{"slow at first, and then busy", flooding, false, report("broken"), late, looks(busy, busy), AgentFailed},
		{"met at first, and then busy", flooding, false, report("broken"), met, looks(busy, busy), AgentFailed},
		{"met at times", idle, false, report("broken"), busy, looks(busy, met), AgentFailed},
		{"nothing known at first", idle, false, report("broken"), unknown, looks(busy), AgentFailed},
		{"nothing known", idle, false, report("met"), unknown, looks(unknown), Solved},
		{"an older record", idle, false, report("broken"), nil, looks(busy), AgentFailed},
		{"never met, and nothing said", idle, false, nil, busy, looks(busy), AgentFailed},
		{"with a fault", idle, true, report("broken"), busy, looks(busy), Solved},
		{"with a fault, and said otherwise", idle, true, report("met"), busy, looks(busy), AgentFailed},
	} {
		run := tt.agent
		run.task, run.healthy, run.answer, run.looks, run.found = problem.Operation, !tt.faulty, tt.answer, tt.looks, tt.found
		run.goal = goal(map[bool]string{true: "broken", false: "met"}[tt.faulty])
		rec, err := record.Read(run.write(t))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := Grade(rec); err != nil || v.Class != tt.want {
			t.Errorf("%s: got %s: %s, %v; want %s", tt.name, v.Class, v.Why, err, tt.want)
		}
	}
}

// The hold is in the record and in the verdict's text, and a mitigation must last for it.
func TestHoldOfARun(t *testing.T) {
	hold := grade.Holding{For: leftHold, Left: []string{"cronjob test/undo"}}
	for name, tt := range map[string]struct {
		looks []grade.Look
		want  Class
	}{
		"six seconds": {[]grade.Look{sound(0), sound(grade.Hold)}, AgentFailed},
		"long enough": {[]grade.Look{sound(0), sound(leftHold)}, Solved},
	} {
		rec, err := record.Read(aRun{task: problem.Mitigation, looks: tt.looks, hold: hold}.write(t))
		if err != nil {
			t.Fatal(err)
		}
		v, err := Grade(rec)
		if err != nil || v.Class != tt.want {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		for _, part := range []string{"30s", "longer than 6s because", "cronjob test/undo"} {
			if !strings.Contains(v.Why, part) {
				t.Errorf("%s: no %q in %q", name, part, v.Why)
			}
		}
	}
}
