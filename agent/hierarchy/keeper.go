package hierarchy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/record"
)

// This file is what maintainers do in operations, by rules: carry out a step, measure, and bring their service to where
// it meets objectives.

// What rules are asked to do in operations.
const (
	measure want = "measure" // tell how the service does by the numbers
	carry   want = "carry"   // carry out a step
	reach   want = "reach"   // bring the service to where it meets objectives
)

// settle is how many seconds metrics need to show a change.
const settling = 22

// gauge measures the service, after a pause if others in this round have not made one.
func (r *ruleMind) gauge(thought string, m Message) *reading {
	command := strings.Join(append([]string{
		"gauge", r.g.Namespace, orDash(r.g.site.Prometheus), r.name,
	}, r.g.site.Calls[r.name]...), " ")
	if m.Pause > 0 && (r.g.paused.Swap(int64(m.Round)) != int64(m.Round) || m.Round == 0) {
		thought += fmt.Sprintf(" I let %d seconds pass first, so that what was before does not count.", m.Pause)
		command = fmt.Sprintf("sleep %d; %s", m.Pause, command)
	}
	return readGauge(r.shell(thought, command))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// shell runs a command. After an error nothing more is run.
func (r *ruleMind) shell(thought, command string) string {
	if r.err != nil {
		return ""
	}
	text, _ := r.say("Thought: " + thought + "\n\nAction:\n" +
		agent.Call("exec_shell", command, operationTimeout))
	return text
}

// operationTimeout is how many seconds a command may take.
const operationTimeout = 150

// operate deals with a message of an operation.
func (r *ruleMind) operate(m Message) (a answer) {
	o := m.Order
	if m.Want == carry {
		for _, s := range o.Steps {
			if s.Service == r.name {
				a.Text = strings.TrimSpace(a.Text + " " + r.carryOut(s))
			}
		}
		return a
	}
	seen := m.Reading
	if seen == nil {
		seen = r.gauge(r.purpose(m), m)
	}
	a.Reading = seen
	why, whom := seen.cause(o.Objectives)
	if why == "" && o.Fix && seen.threatened(o.Objectives) {
		why = demand
	}
	a.issue = len(seen.missed(o.Objectives)) > 0
	a.Text = seen.tell(o.Objectives)
	alone := r.g.mode == peers && o.Fix && why != "" // Nobody tells it to.
	if m.Want != reach && !alone || r.err != nil {
		return a
	}
	if why == waiting && r.g.mode == peers && whom != m.From {
		a.Text += " I have told " + whom + "."
		_ = r.desk.tell(r.ctx, whom, fmt.Sprintf("I miss our objectives because of you, as far as I can see: of your "+
			"requests, 99 of 100 take %s. Can you do something about it?", millis(seen.Called[whom])),
			Message{Want: reach, Order: o}) // If it cannot be told, the report says it all the same.
		return a
	}
	did := r.remedy(seen, o.Objectives, why)
	if did == "" || r.err != nil {
		return a
	}
	r.g.repairs.Add(1)
	now := r.gauge("Has that helped?", Message{Message: record.Message{Round: 0}, Pause: settling})
	a.Reading, a.Text = now, did+" "+now.tell(o.Objectives)
	a.issue = len(now.missed(o.Objectives)) > 0
	return a
}

// purpose is what is said before a measurement.
func (r *ruleMind) purpose(m Message) string {
	if m.Kind == record.HeartbeatMessage {
		return fmt.Sprintf("Is %s as it should be? Its pods, what they use, and how long requests take.", r.name)
	}
	return fmt.Sprintf("I look at %s: its pods, what they use, and how long requests take.", r.name)
}

// remedy does something about a cause, and tells what; nothing if there is nothing to be done here.
func (r *ruleMind) remedy(seen *reading, o objectives, why string) string {
	if !seen.Found {
		return ""
	}
	n := seen.replicas(o)
	status := fmt.Sprintf("kubectl rollout status deployment/%s -n %s --timeout=90s", r.name, r.g.Namespace)
	switch nodes := seen.illNodes(why); {
	case why == waiting, why == "":
		return ""
	case (why == podsDown || why == stressed) && len(nodes) > 0:
		if why == podsDown {
			n = max(1, seen.Wanted)
		}
		where := strings.Join(nodes, " and ")
		r.shell(fmt.Sprintf("What ails my pods is on %s: new pods go elsewhere, and the old ones serve until those "+
			"are "+
			"ready.", where), fmt.Sprintf("kubectl patch deployment %s -n %s -p %s && %s", r.name, r.g.Namespace,
			quote(awayFrom(nodes, n)), status))
		text := fmt.Sprintf("I keep my pods off %s", where)
		if n != seen.Wanted {
			text += fmt.Sprintf(", and have %d of them now, not %d", n, seen.Wanted)
		}
		return text + "."
	case n == seen.Wanted:
		return ""
	default:
		thought := fmt.Sprintf("I need %s instead of %d to stay below what is asked.", plural(n, "pod"), seen.Wanted)
		if seen.rising() {
			thought += " More and more comes, so that counts as well."
		}
		r.shell(thought, fmt.Sprintf("kubectl scale deployment/%s --replicas=%d -n %s && %s", r.name, n, r.g.Namespace,
			status))
		return fmt.Sprintf("I have scaled %s from %d to %d pods.", r.name, seen.Wanted, n)
	}
}

// awayFrom is a patch that has a Deployment's pods run elsewhere.
func awayFrom(nodes []string, replicas int) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = strconv.Quote(n)
	}
	return fmt.Sprintf(`{"spec":{"replicas":%d,"template":{"spec":{"affinity":{"nodeAffinity":`+
		`{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":`+
		`[{"key":"kubernetes.io/hostname","operator":"NotIn","values":[%s]}]}]}}}}}}}`, replicas,
		strings.Join(list, ","))
}

// quote is a word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// carryOut does what a step says, looks whether it took effect, and tells.
func (r *ruleMind) carryOut(s step) string {
	ns, d := r.g.Namespace, "deployment/"+r.name
	status := fmt.Sprintf(" && kubectl rollout status %s -n %s --timeout=90s", d, ns)
	thought, command, done := "", "", ""
	switch s.Kind {
	case createStep:
		thought = fmt.Sprintf("I make %s from the manifest that is kept in %s, and wait until it is "+
			"ready.", r.name, s.Name)
		command = fmt.Sprintf("kubectl get configmap %s -n %s -o json | jq -r --arg key %s '.data[$key]' | "+
			"kubectl apply -n %s -f -", quote(s.Name), ns, quote(s.Value), ns) + status
		done = fmt.Sprintf("I have made %s from its manifest.", r.name)
	case envStep:
		thought = fmt.Sprintf("I set %s; the pods are replaced one after the other.", s.Name)
		command = fmt.Sprintf("kubectl set env %s %s -n %s", d, quote(s.Name+"="+s.Value), ns) + status
		done = fmt.Sprintf("%s is %s in all my pods.", s.Name, s.Value)
	case imageStep:
		now := r.gauge(fmt.Sprintf("What does %s run now?", r.name), Message{})
		image := s.Value
		if !strings.Contains(image, ":") {
			image = repository(now.Image) + ":" + s.Value
		}
		thought = fmt.Sprintf("It is set to run %s, with %d of %d pods ready. I give it %s.", now.Image, now.Ready,
			now.Wanted, image)
		command = fmt.Sprintf("kubectl set image %s %s -n %s", d, quote(now.Container+"="+image), ns) + status
		done = fmt.Sprintf("I run %s now, instead of %s.", image, now.Image)
	case restartStep:
		thought = "I replace my pods one after the other, so that somebody serves all the time."
		command = fmt.Sprintf("kubectl rollout restart %s -n %s", d, ns) + status
		done = "All my pods are new."
	case scaleStep:
		thought = fmt.Sprintf("I scale %s to %s.", r.name, s.Value)
		command = fmt.Sprintf("kubectl scale %s --replicas=%d -n %s", d, number(s.Value), ns) + status
		done = fmt.Sprintf("I am scaled to %s.", s.Value)
	case autoscaleStep:
		return r.autoscale()
	case rotateStep, blockStep, addStep:
		return r.chore(s)
	}
	r.shell(thought, command)
	now := r.gauge("Is it as it was asked for?", Message{})
	return done + " " + now.facts()
}

// repository is an image without its tag.
func repository(image string) string {
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i]
	}
	return image
}

// autoscale sets up an autoscaler that fits what the service uses.
func (r *ruleMind) autoscale() string {
	const target = 70
	now := r.gauge("How much do I use, and how many pods would that take?", Message{})
	most := min(10, max(4, 2*now.replicas(objectives{CPU: 0.6})))
	text := r.shell(fmt.Sprintf("One pod at least; up to %d, which is about twice of what I need today; more of them "+
		"from %d %% of the CPU that I request. Then I see whether the autoscaler can read my usage.", most, target),
		fmt.Sprintf("kubectl autoscale deployment %[1]s -n %[2]s --min=1 --max=%[3]d --cpu-percent=%[4]d; "+
			"for i in 1 2 3 4 5 6 7 8; do sleep 5; kubectl get hpa %[1]s -n %[2]s -o json | "+
			`jq -e '.status.conditions[]? | select(.type == "ScalingActive" and .status == "True")' > /dev/null `+
			"&& break; "+
			"done; kubectl get hpa %[1]s -n %[2]s", r.name, r.g.Namespace, most, target))
	done := fmt.Sprintf("I have an autoscaler: 1 to %d pods, more from %d %% of the CPU requests on.", most, target)
	if strings.Contains(text, "<unknown>") {
		done += " It cannot read my usage yet."
	}
	return done
}
