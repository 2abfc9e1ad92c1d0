// Package blunt has the agents that understand nothing and try a blunt remedy: restart everything,
// scale the faulty workload away, and so on. A mitigation that such an agent passes is graded
// wrongly, unless the problem says that the remedy is a true fix.
package blunt

import (
	"context"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// Entries are the agents, one for each of [fault.Remedies].
func Entries() []agent.Entry {
	var list []agent.Entry
	for _, remedy := range fault.Remedies {
		list = append(list, agent.Entry{
			Name: remedy, Doc: "tries a blunt remedy: " + remedy, KnowsTruth: true, Live: true,
			New: func(b agent.Briefing) (agent.Agent, error) {
				if b.Roster != nil {
					return onCall(remedy, b), nil
				}
				responses, err := answers(b.Truth)
				if err != nil {
					return nil, err
				}
				for _, c := range commands(remedy, b) {
					responses = append(responses, agent.Call("exec_shell", c, patience))
				}
				return agent.Script(append(responses, agent.Call("submit"))...), nil
			},
		})
	}
	return list
}

// patience is how long a command may take, in seconds: a remedy that was broken off on a busy cluster proves nothing.
const patience = 600

// answers are the right ones to the questions of an incident that come before the one to mend it: what is proved is the
// remedy.
func answers(p *problem.Problem) (responses []string, err error) {
	if p.Task != problem.Incident {
		return nil, nil
	}
	for _, q := range p.Questions() {
		if q == problem.Mitigation {
			break
		}
		more, err := agent.Reference(p, q)
		if err != nil {
			return nil, err
		}
		responses = append(responses, more...)
	}
	return responses, nil
}

// commands are what a remedy does.
func commands(remedy string, b agent.Briefing) []string {
	var targets []string
	for _, c := range b.Truth.Document.Answer.Components {
		targets = append(targets, c.Name)
	}
	if b.Roster != nil {
		for _, i := range b.Roster.Incidents {
			targets = append(targets, i.Problem.Involved()...)
		}
	}
	if g := b.Truth.Goal(); g != nil {
		targets = g.Services
	}
	each := func(format string) []string {
		var list []string
		for _, t := range targets {
			list = append(list, fmt.Sprintf(format, t, b.Namespace))
		}
		return list
	}
	switch remedy {
	case fault.RestartEverything:
		return []string{fmt.Sprintf("for w in $(kubectl get deployment,statefulset -n %[1]s -o name); do "+
			"kubectl rollout restart -n %[1]s $w; done", b.Namespace)}
	case fault.RollBackEverything:
		return []string{fmt.Sprintf("for d in $(kubectl get deployment -n %[1]s -o name); do kubectl rollout undo "+
			"-n %[1]s $d; done", b.Namespace)}
	case fault.ScaleToZero:
		return each("kubectl scale deployment %[1]s --replicas=0 -n %[2]s || " +
			"kubectl scale statefulset %[1]s --replicas=0 -n %[2]s")
	case fault.DeleteTheWorkload:
		return each("kubectl delete deployment %[1]s -n %[2]s || kubectl delete statefulset %[1]s -n %[2]s")
	case fault.LimitsToInfinity:
		return []string{fmt.Sprintf("for w in $(kubectl get deployment,statefulset -n %[1]s -o name); do "+
			"kubectl set resources $w --limits=cpu=64,memory=64Gi -n %[1]s; done", b.Namespace)}
	case fault.SilenceTheAlerts:
		return []string{"for n in $(kubectl get namespaces -o name | grep /observe | cut -d/ -f2); do " +
			"kubectl delete configmap --all -n $n; done"}
	}
	return nil
}

// onCall tries the remedy whenever the pager calls.
func onCall(remedy string, b agent.Briefing) agent.Agent {
	var todo []string
	return agent.Func(func(_ context.Context, observation string) (string, error) {
		if len(todo) == 0 && strings.Contains(observation, "\nPage ") {
			todo = commands(remedy, b)
		}
		if len(todo) == 0 {
			return agent.Call("submit"), nil
		}
		next := todo[0]
		todo = todo[1:]
		return agent.Call("exec_shell", next, patience), nil
	})
}
