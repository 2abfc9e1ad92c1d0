package hierarchy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// stall is a service of a small world: what its requests cost, how many come, and what is wrong with a node.
type stall struct {
	replicas   int
	limit      float64 // of a pod, in cores
	cost       float64 // of a request, in seconds of CPU
	rate       float64
	grows      float64 // requests a second that are added by each look, up to
	most       float64
	burnt      float64 // that something burns on the node "bad"
	dead       bool    // pods on the node "bad" do nothing
	calls      string
	env, image string
	away       bool // its pods are off the node
	looks      int
	scaler     bool
}

// market is a world of stalls.
type market struct {
	stalls  map[string]*stall
	changes []string
}

var (
	gaugeCall = regexp.MustCompile(`^(?:sleep \d+; )?gauge n prom\.observe:80 (\S+)`)
	scaleCall = regexp.MustCompile(`^kubectl scale deployment/(\S+) --replicas=(\d+) `)
	patchCall = regexp.MustCompile(`^kubectl patch deployment (\S+) .*"replicas":(\d+),.*"bad"`)
	imageCall = regexp.MustCompile(`^kubectl set image deployment/(\S+) '\S+=(\S+)'`)
	envCall   = regexp.MustCompile(`^kubectl set env deployment/(\S+) '(\S+)'`)
	autoCall  = regexp.MustCompile(`^kubectl autoscale deployment (\S+) -n n --min=(\d+) --max=(\d+) --cpu-percent=(\d+)`)
)

func (w *market) answer(c *aci.Call) string {
	command, _ := c.Args[0].(string)
	change := func(re *regexp.Regexp) []string {
		m := re.FindStringSubmatch(command)
		if m != nil {
			w.changes = append(w.changes, m[0])
		}
		return m
	}
	switch m := gaugeCall.FindStringSubmatch(command); {
	case c.Name == "get_topology":
		return "SERVICE  KIND  READY PODS  PORTS  DEPENDS ON\nfront  service  1/1  80  back\nback  service  1/1  80  -\n"
	case strings.Contains(command, "# gauge NAMESPACE"):
		return "observe  prom  NodePort  10.0.0.1  <none>  80:32000/TCP  1d\nobserve       prom   ClusterIP   10.96.0.1   <none>   80/TCP   1d"
	case m != nil:
		return w.gauge(m[1])
	}
	if m := change(scaleCall); m != nil {
		w.stalls[m[1]].replicas, _ = strconv.Atoi(m[2])
	} else if m := change(patchCall); m != nil {
		s := w.stalls[m[1]]
		s.replicas, _ = strconv.Atoi(m[2])
		s.away = true
	} else if m := change(imageCall); m != nil {
		w.stalls[m[1]].image = m[2]
	} else if m := change(envCall); m != nil {
		w.stalls[m[1]].env = m[2]
	} else if m := change(autoCall); m != nil {
		w.stalls[m[1]].scaler = true
	} else {
		w.changes = append(w.changes, command)
	}
	return "done"
}

// gauge is what the helper prints.
func (w *market) gauge(name string) string {
	s := w.stalls[name]
	before := s.rate
	if s.looks++; s.grows > 0 {
		s.rate = min(s.most, s.rate+s.grows)
	}
	ready := s.replicas
	if s.dead && !s.away {
		ready--
	}
	used := s.cost * s.rate
	if !s.away {
		used += s.burnt
	}
	used = min(used, float64(s.replicas)*s.limit)
	p99 := w.p99(name)
	var b strings.Builder
	fmt.Fprintf(&b, "deployment %d %d %d true\ncontainer %s %s %dm 200Mi\n", s.replicas, ready, s.replicas, name, s.image,
		int(1000*s.limit))
	for i := range s.replicas {
		node, ill := "good", false
		if i == 0 && !s.away {
			node, ill = "bad", s.dead
		}
		fmt.Fprintf(&b, "pod %s-a-%d %v %s Running\n", name, i, !ill, node)
		fmt.Fprintf(&b, "memory %s-a-%d 1000000\n", name, i)
	}
	for i := range s.replicas {
		cpu := min(s.limit, s.cost*s.rate/float64(s.replicas))
		if i == 0 && !s.away {
			cpu = min(s.limit, cpu+s.burnt)
		}
		fmt.Fprintf(&b, "cpu %s-a-%d %v\n", name, i, cpu)
	}
	fmt.Fprintf(&b, "p99 %s %v\nrate - %v\nrate-before - %v\ncost - %v\ncost-least - %v\n", name, p99, s.rate, before,
		used/s.rate, s.cost)
	if s.calls != "" {
		fmt.Fprintf(&b, "called-p99 %s %v\n", s.calls, w.p99(s.calls))
	}
	return b.String()
}

// p99 grows with how busy the pods are, and with what they wait for.
func (w *market) p99(name string) float64 {
	s := w.stalls[name]
	busy := s.cost * s.rate
	if !s.away {
		busy += s.burnt
	}
	busy /= float64(s.replicas) * s.limit
	p99 := 0.02
	if busy > 0.7 || s.dead && !s.away {
		p99 = 1
	}
	if s.calls != "" {
		p99 += w.p99(s.calls)
	}
	return p99
}

// lacks is the first of some texts that is in nothing that was changed.
func lacks(w *market, texts ...string) string {
	for _, text := range texts {
		if !strings.Contains(strings.Join(w.changes, "\n"), text) {
			return "nothing was done with " + text
		}
	}
	return ""
}

func newMarket(edit func(front, back *stall)) *market {
	front := &stall{replicas: 1, limit: 0.3, cost: 0.001, rate: 60, calls: "back", image: "shop/front:1.0"}
	back := &stall{replicas: 1, limit: 0.2, cost: 0.003, rate: 20, image: "shop/back:1.5"}
	edit(front, back)
	return &market{stalls: map[string]*stall{"front": front, "back": back}}
}

// operation tasks in the words that agents are told them.
func asked(level string, services string) (ask string, report []problem.Item) {
	ask = "Check the state of each of the services " + services + ". Its service level objectives are: all pods are " +
		"ready, they use less than 50 % of their CPU and memory limits, and 99 of 100 requests take less than 200 ms. "
	switch level {
	case "L3":
		return ask + "Find out whether they are met.", []problem.Item{{Key: "slo", Words: []string{"met", "broken"}}}
	case "L4":
		return ask + "Find out why they are not met.",
			[]problem.Item{{Key: "cause", Words: []string{"pod failure", "cpu stress", "rising traffic"}}}
	}
	return ask + "If they are not met, find out why, and see to it that they are, and stay so.", nil
}

func TestOperations(t *testing.T) {
	well := func(_, _ *stall) {}
	burnt := func(_, b *stall) { b.burnt = 0.2 }
	dead := func(_, b *stall) { b.dead = true }
	rising := func(f, b *stall) { b.grows, b.most, f.grows, f.most = 12, 100, 36, 300 }
	busy := func(f, b *stall) { b.rate, f.rate = 80, 240 }
	for _, tt := range []struct {
		name, level, ask string
		report           []problem.Item
		edit             func(front, back *stall)
		submit           string
		changes          []string // the beginnings of what must be changed
		check            func(w *market) string
	}{
		{name: "well", level: "L3", edit: well, submit: `submit({"slo":"met"})`},
		{name: "burnt", level: "L3", edit: burnt, submit: `submit({"slo":"broken"})`},
		{name: "dead", level: "L3", edit: dead, submit: `submit({"slo":"broken"})`},
		{name: "rising", level: "L3", edit: rising, submit: `submit({"slo":"broken"})`},
		{name: "burnt", level: "L4", edit: burnt, submit: `submit({"cause":"cpu stress"})`},
		{name: "dead", level: "L4", edit: dead, submit: `submit({"cause":"pod failure"})`},
		{name: "rising", level: "L4", edit: rising, submit: `submit({"cause":"rising traffic"})`},
		{
			name: "well", level: "L5", edit: well, submit: "submit()",
			check: func(w *market) string { return strings.Join(w.changes, "\n") },
		},
		{name: "burnt", level: "L5", edit: burnt, submit: "submit()", changes: []string{"kubectl patch deployment back "}},
		{name: "dead", level: "L5", edit: dead, submit: "submit()", changes: []string{"kubectl patch deployment back "}},
		{
			name: "rising", level: "L5", edit: rising, submit: "submit()",
			changes: []string{"kubectl scale deployment/back ", "kubectl scale deployment/front "},
			check: func(w *market) string {
				for name, s := range w.stalls {
					if part := s.cost * s.most / (float64(s.replicas) * s.limit); part >= 0.5 {
						return fmt.Sprintf("%s has %d pods for %.0f requests a second", name, s.replicas, s.rate)
					}
				}
				return ""
			},
		},
		{
			name: "cpu", ask: "Bring the CPU usage of the service back below 30 % of its limits, on average over its pods. " +
				"Users come through the front.", edit: busy, submit: "submit()",
			changes: []string{"kubectl scale deployment/back --replicas=5 "},
		},
		{
			name: "latency", ask: "Bring the 99th percentiles of the latencies of the services back and front below 400 ms " +
				"in sum.", edit: busy, submit: "submit()", changes: []string{"kubectl scale deployment/back "},
		},
		{
			name: "report", ask: "Check whether the performance of the service back is normal: 99 of 100 requests are to take " +
				"less than a second.", edit: busy, submit: `submit({"cpu":200,"normal":"no","p99":1000})`,
			report: []problem.Item{
				{Key: "normal", Words: []string{"yes", "no"}},
				{Key: "p99", Is: problem.P99Item, Of: "back"},
				{Key: "cpu", Is: problem.CPUItem, Of: "back"},
			},
		},
		{
			name: "scale", ask: "Scale the Deployment back to 3 replicas.", edit: well, submit: "submit()",
			changes: []string{"kubectl scale deployment/back --replicas=3 "},
		},
		{
			name: "restart", ask: "Restart all pods of the Deployment back.", edit: well, submit: "submit()",
			changes: []string{"kubectl rollout restart deployment/back "},
		},
		{
			name: "version", ask: "The Deployment back was given the image shop/back:1.5. Roll it back to version 1.4.",
			edit: well, submit: "submit()", changes: []string{"kubectl set image deployment/back 'back=shop/back:1.4'"},
		},
		{
			name: "variable", ask: "Set the environment variable flag of the Deployment front to on.", edit: well,
			submit: "submit()", changes: []string{"kubectl set env deployment/front 'flag=on'"},
		},
		{
			name: "create", ask: "The Deployment back does not exist. Create it from its manifest, which is in the " +
				"ConfigMap spare under back.yaml.", edit: well, submit: "submit()",
			changes: []string{"kubectl get configmap 'spare' -n n -o json | jq -r --arg key 'back.yaml' "},
		},
		{
			name: "rotate", ask: "Rotate the login of the service front to its database back, a MySQL server: it has leaked. " +
				"Another one is to be in the Secret keys, under username and password.", edit: well, submit: "submit()",
			changes: []string{"old=$(kubectl get secret keys -n n "},
			check: func(w *market) string {
				return lacks(w, "kubectl exec deployment/back -n n ", "CREATE USER '$user'", "patch secret keys -n n",
					"rollout restart deployment/front", "DROP USER '$old'")
			},
		},
		{
			name: "block", ask: "One of the clients in the namespace guests floods the service front with requests. Find " +
				"out which one, and block it.", edit: well, submit: "submit()",
			changes: []string{"client=$(for d in $(kubectl get deployment -n guests "},
			check: func(w *market) string {
				return lacks(w, "kubectl get service front -n n", "kubectl apply -n n ", "NotIn, values: [guests]")
			},
		},
		{
			name: "add", ask: "Add a service. It is called back-2: a Deployment of that name with 3 replicas of the image " +
				"shop/back:1.6, which do as back does, and a Service of that name on port 80.", edit: well,
			submit: "submit()", changes: []string{"kubectl get deployment back -n n -o json | jq --arg name 'back-2' "},
			check: func(w *market) string {
				return lacks(w, "'shop/back:1.6'", ".spec.replicas = 3", "kubectl expose deployment 'back-2' -n n --port=80")
			},
		},
		{
			name: "autoscaling", ask: "Set up autoscaling for the service back, with bounds and a CPU target that make sense " +
				"for it.", edit: busy, submit: "submit()",
			changes: []string{"kubectl autoscale deployment back -n n --min=1 --max=6 --cpu-percent=70"},
		},
	} {
		for _, m := range []mode{manager, peers, single} {
			t.Run(tt.name+tt.level+"/"+string(m), func(t *testing.T) {
				ask, report := tt.ask, tt.report
				if tt.level != "" {
					ask, report = asked(tt.level, "back and front")
				}
				w := newMarket(tt.edit)
				g := &problem.Goal{Ask: ask, Report: report}
				r := play(t, options{mode: m}, agent.Briefing{
					Task:        problem.Operation,
					Description: aci.Description(string(problem.Operation), &app.App{}, g.Told()),
				}, w.answer)
				if r.err != nil {
					t.Fatalf("%v\n%s", r.err, r.talk())
				}
				t.Logf("%d steps\n%s", len(r.steps), r.talk())
				if diff := cmp.Diff([]string{tt.submit}, r.answers); diff != "" {
					t.Error(diff)
				}
				for _, c := range tt.changes {
					if !strings.Contains(strings.Join(w.changes, "\n"), c) {
						t.Errorf("did not %s, but\n%s", c, strings.Join(w.changes, "\n"))
					}
				}
				if tt.check != nil && tt.check(w) != "" {
					t.Error(tt.check(w))
				}
				checkHeartbeats(t, tt.level, m, r)
			})
		}
	}
}

// checkHeartbeats looks whether objectives that always hold are looked at without anybody having asked: whatever the
// maintainers did began with a heartbeat.
func checkHeartbeats(t *testing.T, level string, m mode, r *run) {
	if m == single {
		return
	}
	beats := 0
	met := map[string]bool{}
	for _, msg := range r.messages {
		if msg.Kind == record.HeartbeatMessage {
			beats++
		}
		if level != "" && !met[msg.To] && msg.To != managerName && msg.To != speakerName &&
			msg.Kind != record.HeartbeatMessage {
			t.Errorf("the first message to %s is %+v, and no heartbeat", msg.To, msg)
		}
		met[msg.To] = true
	}
	if level == "" && beats > 0 {
		t.Errorf("there were %d heartbeats", beats)
	}
}

func TestReadGauge(t *testing.T) {
	slo := objectives{Ready: true, CPU: 0.5, Memory: 0.5, P99: 200 * time.Millisecond}
	const two = "deployment 2 2 2 true\ncontainer c shop/c:1 200m 200Mi\npod c-1 true n1 Running\npod c-2 true n2 Running\n"
	for _, tt := range []struct {
		name, text string
		missed     []string
		why, whom  string
		replicas   int
		nodes      []string
	}{
		{name: "absent", text: "absent\n", missed: []string{"there is no Deployment"}, why: podsDown, replicas: 2},
		{name: "well", text: two + "cpu c-1 0.05\ncpu c-2 0.05\np99 c 0.1\nrate - 30\ncost - 0.003\ncost-least - 0.003\n", replicas: 2},
		{
			name: "busy", text: two + "cpu c-1 0.19\ncpu c-2 0.19\np99 c 0.9\nrate - 120\nrate-before - 60\ncost - 0.003\ncost-least - 0.003\n",
			missed: []string{"CPU is at 95 % of the limit", "99 of 100 requests take 900ms"}, why: demand, replicas: 11,
		},
		{
			name: "burnt", text: two + "cpu c-1 0.2\ncpu c-2 0.03\np99 c 0.9\nrate - 20\ncost - 0.0115\ncost-least - 0.003\n",
			missed: []string{"CPU is at 57 % of the limit", "99 of 100 requests take 900ms"}, why: stressed, replicas: 2,
			nodes: []string{"n1"},
		},
		{
			name: "down", text: strings.Replace(strings.Replace(two, "2 2 2", "2 1 2", 1), "c-2 true", "c-2 false", 1) + "p99 c 0.1\n",
			missed: []string{"1 of 2 pods are ready"}, why: podsDown, replicas: 3, nodes: []string{"n2"},
		},
		{
			name: "waits", text: two + "cpu c-1 0.02\ncpu c-2 0.02\np99 c 0.9\nrate - 20\ncalled-p99 d 0.85\ncalled-p99 e 0.01\n",
			missed: []string{"99 of 100 requests take 900ms"}, why: waiting, whom: "d", replicas: 2,
		},
		{
			name: "nobody knows", text: two + "cpu c-1 0.02\ncpu c-2 0.02\np99 c 0.3\nrate - 20\ncost - NaN\n",
			missed: []string{"99 of 100 requests take 300ms"}, why: unclear, replicas: 3,
		},
		{name: "garbage", text: "deployment x\npod\ncpu c-1\ncpu - 1e400\nrate - -7\n\x00", missed: []string{"there is no Deployment"}, why: podsDown, replicas: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readGauge(tt.text)
			why, whom := r.cause(slo)
			if diff := cmp.Diff([]any{tt.missed, tt.why, tt.whom}, []any{r.missed(slo), why, whom}); diff != "" {
				t.Error(diff)
			}
			if n := r.replicas(slo); n != tt.replicas {
				t.Errorf("wants %d pods, not %d", n, tt.replicas)
			}
			if why != "" {
				if diff := cmp.Diff(tt.nodes, r.illNodes(why)); why != demand && why != waiting && why != unclear && diff != "" {
					t.Error(diff)
				}
			}
			if r.tell(slo) == "" {
				t.Error("says nothing")
			}
		})
	}
}

// Heartbeats of an operation go to whom it is about, where it states objectives that always hold; else to nobody.
func TestRegularHeartbeats(t *testing.T) {
	standing, _ := asked("L5", "back")
	for _, tt := range []struct {
		task problem.Task
		ask  string
		who  []string
		want want
	}{
		{problem.Mitigation, "", []string{"front", "back"}, look},
		{problem.Operation, "Make it nicer.", []string{"front", "back"}, look},
		{problem.Operation, "Scale the Deployment back to 3 replicas.", nil, look},
		{problem.Operation, standing, []string{"back"}, measure},
	} {
		g := &group{Briefing: agent.Briefing{Task: tt.task}}
		g.site.Services = []string{"front", "back"}
		g.order = readOrder(aci.Description(string(problem.Operation), &app.App{}, tt.ask), g.site.Services)
		who, _, with := g.regular()
		if !cmp.Equal(who, tt.who) || with.Want != tt.want {
			t.Errorf("%s: %v, %+v", tt.ask, who, with)
		}
	}
}

// A manager that is a model hears what heartbeats say before it has asked anything.
func TestModelHeartbeat(t *testing.T) {
	ask, report := asked("L3", "cart")
	g := &problem.Goal{Ask: ask, Report: report}
	first := ""
	r := play(t, options{mode: manager}, agent.Briefing{
		Task: problem.Operation, Description: aci.Description(string(problem.Operation), &app.App{}, g.Told()),
		Model: model(t, cast{
			managerName: func(said string) string {
				if first == "" {
					first = said
				}
				return `submit({"slo": "broken"})`
			},
			"cart": func(string) string { return `report_result("I am slow: 300 ms", "ISSUE")` },
		}),
	}, shop)
	if r.err != nil || !strings.Contains(first, "ISSUE from cart:\n> I am slow: 300 ms") {
		t.Errorf("%v: the manager heard %q", r.err, first)
	}
	if len(r.messages) != 2 || r.messages[0].Kind != record.HeartbeatMessage {
		t.Errorf("sent %+v", r.messages)
	}
}
