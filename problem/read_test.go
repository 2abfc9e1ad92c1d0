package problem_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

const good = `id: scale-{task}-1
title: user-service is scaled to no replicas
app: social-network
load: {rate: 20}
faults:
  - {kind: scale_pods_to_zero, target: user-service}
tasks: [detection, localization, analysis, mitigation]
answer:
  components: [{name: user-service}]
  cause: {system_level: Virtualization, fault_type: Operation Error}
`

func TestParse(t *testing.T) {
	list, err := problemtest.Library(t).Parse("mine.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	want := "scale-detection-1 scale-detection-1-healthy scale-localization-1 scale-analysis-1 scale-mitigation-1 " +
		"scale-incident-1 scale-incident-1-healthy"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if list[0].Anomaly() != "Yes" || list[1].Anomaly() != "No" || list[1].Faulty() {
		t.Error("the twin is not healthy")
	}
	a, err := list[0].Bind()
	if err != nil || len(a) != 1 {
		t.Errorf("bind: %v, %v", a, err)
	}
}

// What is wrong with a document is said, with the file, the line where there is one, and what would
// be right.
func TestParseErrors(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in the document", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, tt := range []struct{ name, doc, want string }{
		{"unknown field", replace("title:", "titel:"), "mine.yaml: title is missing\nmine.yaml:2: unknown field \"titel\"; did you mean \"title\"?"},
		{"a tab", replace("  - {kind", "\t- {kind"), "mine.yaml:6: a tab indents this line; YAML takes spaces only"},
		{"twice", replace("load:", "app: social-network\nload:"), `mine.yaml:4: "app" is there twice, on line 3 already`},
		{"no task in the id", replace("-{task}", ""), `mine.yaml:1: id "scale-1": want letters, digits, '_', '-' and '.', with {task} where the task's name goes`},
		{"unknown app", replace("social-network", "social-netwrk"), `mine.yaml:3: app: there is no application "social-netwrk"; did you mean "social-network"?`},
		{"an app far off", replace("social-network", "bank"), `mine.yaml:3: app: there is no application "bank"; known are hotel-reservation, social-network, astronomy-shop, tidb-cluster, flower, flight-ticket, train-ticket, sock-shop; for one of your own, give its directory with --apps`},
		{"unknown task", replace("mitigation]", "mitigate]"), `mine.yaml:7: tasks: there is no task "mitigate"; did you mean "mitigation"?`},
		{"a task twice", replace("mitigation]", "detection]"), `mine.yaml:7: tasks: detection is there twice`},
		{"a reason for what is asked", replace("answer:", "without: {mitigation: it cannot be mended}\nanswer:"), `mine.yaml:8: without: mitigation is among tasks`},
		{"a reason for nothing", replace("answer:", "without: {mitigate: it cannot be mended}\nanswer:"), `mine.yaml:8: without: there is no task "mitigate"; did you mean "mitigation"?`},
		{"no reason", replace(", mitigation]\n", "]\nwithout: {mitigation: ''}\n"), `mine.yaml:8: without: say why there is no mitigation`},
		{"tasks as a text", replace("[detection, localization, analysis, mitigation]", "detection"), `mine.yaml:7: "tasks": want a list, as in [a, b], not "detection"`},
		{"unknown fault", replace("scale_pods_to_zero", "scale_pod_to_zero"), `mine.yaml:6: faults[0]: there is no fault "scale_pod_to_zero"; did you mean "scale_pods_to_zero"?`},
		{"unknown target", replace("target: user-service", "target: user-servic"), `mine.yaml:6: faults[0]: scale_pods_to_zero cannot go to "user-servic" of social-network; did you mean "user-service"?`},
		{"no target", replace(", target: user-service", ""), `mine.yaml:6: faults[0]: scale_pods_to_zero needs a target of social-network: one of`},
		{"unknown parameter", replace("kind: scale_pods_to_zero, target: user-service", "kind: network_delay, target: user-service, params: {dealy: 1s}"), `mine.yaml:6: faults[0]: unknown field "dealy"; did you mean "delay"?`},
		{"a parameter of another type", replace("kind: scale_pods_to_zero, target: user-service", "kind: network_delay, target: user-service, params: {delay: long}"), `mine.yaml:6: faults[0]: parameter "delay": want a time with its unit, such as 10s or 500ms, not "long"`},
		{"a delay that does not show", replace("{kind: scale_pods_to_zero, target: user-service}", "kind: network_delay\n    target: user-service\n    params:\n      direction: to\n      delay: 1ms"), `mine.yaml:10: faults[0]: parameter "delay" must be at least 20ms: less does not show beside what a busy machine takes`},
		{"a negative delay", replace("kind: scale_pods_to_zero, target: user-service", "kind: network_delay, target: user-service, params: {delay: -1s}"), `mine.yaml:6: faults[0]: parameter "delay" must be at least 20ms`},
		{"200 %", replace("kind: scale_pods_to_zero, target: user-service", "kind: network_loss, target: user-service, params: {loss: 2}"), `mine.yaml:6: faults[0]: parameter "loss" is a part of all: at most 1, and 0.5 is 50 %`},
		{"a ramp for days", replace("kind: scale_pods_to_zero, target: user-service", "kind: network_loss, target: user-service, params: {ramp: 48h}"), `mine.yaml:6: faults[0]: parameter "ramp" must be at most 10m0s: nobody waits longer for a fault to show`},
		{"over at once", replace("kind: scale_pods_to_zero, target: user-service", "kind: network_loss, target: user-service, params: {every: 10s, for: 1ms}"), `mine.yaml:6: faults[0]: parameter "for" must be at least 1s: what is over sooner does not show`},
		{"unknown component", replace("name: user-service", "name: user-servis"), `mine.yaml:9: answer.components: in social-network there is no service "user-servis"; did you mean "user-service"?`},
		{"unknown level", replace("Virtualization", "Virtualisation"), `mine.yaml:10: answer: there is no system_level "Virtualisation"; did you mean "Virtualization"?`},
		{"unknown remedy", good + "true_fixes: {restart: it helps}\n", `mine.yaml:11: true_fixes: there is no remedy "restart"; known are `},
		{
			"three causes", good + "  also: [{system_level: Hardware, fault_type: Code Defect}, {system_level: Hardware, fault_type: Operation Error}]\n",
			"mine.yaml:11: answer.also has 2 causes: one beside answer.cause is the most, or a constant answer is right too often\n" +
				"mine.yaml:11: answer.because is missing: say what can be seen that supports two causes",
		},
		{"no answer", good[:strings.Index(good, "answer:")], "mine.yaml: answer.components is missing: the localization task asks for it\nmine.yaml: answer.cause is missing: the analysis task asks for it"},
		{"no load", replace("load: {rate: 20}", "load: {}"), "mine.yaml:4: load.rate: it is missing: requests a second, such as \"rate: 10\""},
		{"a rate of a million", replace("rate: 20", "rate: 1000000"), "mine.yaml:4: load.rate: 1e+06: want at most 1000 requests a second; a cluster on one machine serves some hundred"},
		{"no number", replace("rate: 20", "rate: .nan"), "mine.yaml:4: load.rate: NaN: want a number of requests a second, not negative"},
		{"a negative rate", replace("rate: 20", "rate: -3"), "mine.yaml:4: load.rate: -3: want a number of requests a second, not negative"},
		{"a rate in words", replace("rate: 20", "rate: many"), "mine.yaml:4: \"rate\": want a number, or a shape such as {ramp: {from: 10, to: 100}, for: 2m}, not \"many\""},
		{"a shape that ends", replace("rate: 20", "rate: {ramp: {from: 10, to: 20}, for: 5m}"), `mine.yaml:4: load.rate: it ends after 5m0s, and a run goes on until it is graded; end with a phase without "for"`},
		{"an unknown shape", replace("{rate: 20}", "\n  rate:\n    - {constant: 5, for: 10s}\n    - {dayly: {mean: 5}}"), `mine.yaml:7: unknown field "dayly"; did you mean "daily"?`},
		{"a phase without a shape", replace("{rate: 20}", "\n  rate:\n    - {constant: 5, for: 10s}\n    - {for: 10s}"), "mine.yaml:7: load.rate[1]: give exactly one of constant, ramp, step, daily, burst"},
		{"quiet between bursts", replace("rate: 20", "rate: {burst: {base: 0, peak: 100, every: 1m, lasting: 5s}}"), "mine.yaml:4: load.rate: it is at times 0: want at least 1 request a second, or nobody learns whether users are served"},
		{"bursts that nobody can serve", replace("rate: 20", "rate: {burst: {base: 10, peak: 5000, every: 1m, lasting: 5s}}"), "mine.yaml:4: load.rate: it is at times 5000: want at most 1000 requests a second; a cluster on one machine serves some hundred"},
		{"a real day", replace("rate: 20", "rate: {daily: {mean: 20, amplitude: 0.5}}"), "mine.yaml:4: load.rate.daily.period: say how long a day is, at most 1h0m0s: a run takes minutes, and nobody would see it change"},
		{"an unknown process", replace("rate: 20", "rate: 20, process: normall"), `mine.yaml:4: load.process: there is no process "normall"; did you mean "normal"?`},
		{"users and a rate", replace("rate: 20", "rate: 20, users: {count: 5, think: {min: 1s, max: 2s}}"), "mine.yaml:4: load.users: they send as they are answered; leave out rate, noise, surges, process and replay"},
		{"users who never stop", replace("rate: 20", "users: {count: 5}"), "mine.yaml:4: load.users: +Inf: want at most 1000 requests a second; a cluster on one machine serves some hundred; let them think longer"},
		{"users who fall asleep", replace("rate: 20", "users: {count: 5, think: {min: 10s, max: 20s}}"), "mine.yaml:4: load.users: 0.3333333333333333: want at least 1 request a second, or nobody learns whether users are served"},
		{"a trace with an unknown operation", replace("{rate: 20}", "{replay: {trace: \"time,operation\\n0,read-home-timelin\\n1,read-home-timeline\"}}"), `mine.yaml:4: load.replay.trace: request 1: in mix social-mixed there is no operation "read-home-timelin"; did you mean "read-home-timeline"?`},
		{"a trace with a gap", replace("{rate: 20}", "{replay: {trace: \"time\\n0\\n1\\n20\\n21\\n22\"}}"), "mine.yaml:4: load.replay.trace: it is at times 0: want at least 1 request a second, or nobody learns whether users are served"},
		{"a trace that goes back", replace("{rate: 20}", "\n  replay:\n    trace: |\n      time\n      2\n      1"), "mine.yaml:6: load.replay.trace: line 3: time 1 is before the one above; sort the trace"},
		{"unknown mix", replace("rate: 20", "rate: 20, mix: social-mixd"), `mine.yaml:4: load.mix: there is no mix "social-mixd"; did you mean "social-mixed"?`},
		{"all at once", replace("app: social-network\nload: {rate: 20}", "app: social-network\nload: {rate: 0.1, mx: a}\ntasks_: []"), "mine.yaml:4: unknown field \"mx\"; did you mean \"mix\"?\nmine.yaml:4: load.rate: 0.1: want at least 1 request a second, or nobody learns whether users are served\nmine.yaml:5: unknown field \"tasks_\"; did you mean \"tasks\"?"},
		{"empty", "", "mine.yaml: the document is empty"},
		{"something else", "- a\n- b\n", "mine.yaml:1: want names and values, as in {name: value}, not a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := problemtest.Library(t).Parse("mine.yaml", []byte(tt.doc))
			if err == nil {
				t.Fatalf("got %d problems", len(list))
			}
			// Where the message goes on, the rest is a list or a reason that another row has.
			if !strings.HasPrefix(err.Error(), tt.want) || strings.Count(err.Error(), "\n") != strings.Count(tt.want, "\n") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// A problem of one's own does not take the name of a built-in one.
func TestTakenID(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	doc := "# Mine.\n" + strings.Replace(good, "id: scale-{task}-1", "id: scale_pod_zero_social_net-{task}-1", 1)
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	want := file + ":2: id: scale_pod_zero_social_net-detection-1 is a built-in problem; take another id, such as my-scale_pod_zero_social_net-{task}-1"
	if _, err := problemtest.Library(t).ReadFile(file); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// An incident asks what its document has an answer for, and its healthy twin the same.
func TestQuestions(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	const all = "[detection, localization, analysis, mitigation]"
	for _, tt := range []struct{ name, doc, want string }{
		{"all", good, "detection localization analysis mitigation"},
		{"what its tasks ask", replace(all, "[localization]"), "detection localization"},
		{"no cause", strings.Replace(replace(all, "[detection, localization, mitigation]"), "  cause: {system_level: Virtualization, fault_type: Operation Error}\n", "", 1), "detection localization mitigation"},
		{"by itself", replace(all, "[incident]"), "detection localization analysis mitigation"},
		{"by itself, and nobody can mend it", strings.Replace(replace(all, "[incident]"), "scale_pods_to_zero", "pod_failure", 1), "detection localization analysis"},
		{"nothing to find", replace(all, "[detection, analysis]"), ""},
	} {
		list, err := problemtest.Library(t).Parse("mine.yaml", []byte(tt.doc))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, p := range list {
			if p.Task != problem.Incident {
				if q := p.Questions(); len(q) != 1 || q[0] != p.Task {
					t.Errorf("%s asks %v", p.ID, q)
				}
				continue
			}
			var questions []string
			for _, q := range p.Questions() {
				questions = append(questions, string(q))
			}
			got = append(got, strings.Join(questions, " "))
			if a := p.Answer(); p.Healthy == (len(a.Components) > 0) {
				t.Errorf("%s: the answer is %v", p.ID, a)
			}
		}
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 2 || got[0] != tt.want || got[1] != tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	doc := strings.Replace(replace(all, "[incident]"), "scale_pods_to_zero", "pod_failure", 1)
	doc = doc[:strings.Index(doc, "answer:")]
	if _, err := problemtest.Library(t).Parse("mine.yaml", []byte(doc)); err == nil || !strings.Contains(err.Error(), "an incident needs something to ask") {
		t.Errorf("got %v", err)
	}
}

// A fault that only the injector can undo has no mitigation.
func TestNoMitigationWithoutAFix(t *testing.T) {
	doc := strings.Replace(good, "kind: scale_pods_to_zero", "kind: pod_failure", 1)
	if _, err := problemtest.Library(t).Parse("mine.yaml", []byte(doc)); err == nil || !strings.Contains(err.Error(), "there can be no mitigation task") {
		t.Errorf("got %v", err)
	}
}

// The document in docs/problems.md is one.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```yaml\n")
	doc, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("there is no document")
	}
	list, err := problemtest.Library(t).Parse("mine.yaml", []byte(doc))
	if err != nil || len(list) != 7 {
		t.Errorf("%d problems, %v", len(list), err)
	}
}

// No remedy makes a report, whatever it does to the fault; without a report it may be a fix.
func TestNoFixReports(t *testing.T) {
	for id, want := range map[string]bool{
		"autonomic-L3-cpu-stress-low-1": false, "autonomic-L4-cpu-stress-high-1": false, "autonomic-L5-cpu-stress-low-1": true,
	} {
		p, err := problemtest.Library(t).Find(id)
		if err != nil {
			t.Fatal(err)
		}
		if _, fix := p.TrueFixes()[fault.LimitsToInfinity]; fix != want {
			t.Errorf("%s: limits to infinity are a fix: %v", id, fix)
		}
		if some := len(p.MayFix()) > 0; some != want {
			t.Errorf("%s: there are remedies that may fix it: %v", id, some)
		}
	}
}

const operation = `id: scale-it-1
title: geo is to have more replicas
app: hotel-reservation
load: {rate: 20}
tasks: [operation]
goal:
  level: L1
  services: [geo]
  ask: Scale geo to 3 replicas.
  want:
    - {service: geo, replicas: 3}
  report:
    - {key: cpu, is: cpu, of: geo}
    - {key: slo, value: met, words: [met, broken]}
  solution:
    - kubectl scale deployment/geo --replicas=3 -n {namespace}
`

// An operation is one problem, which tells the agent what is asked and how to report; and every mistake in it is told.
func TestOperation(t *testing.T) {
	l := problemtest.Library(t)
	list, err := l.Parse("op.yaml", []byte(operation))
	if err != nil || len(list) != 1 || list[0].ID != "scale-it-1" || list[0].Task != problem.Operation {
		t.Fatalf("%v, %v", list, err)
	}
	if got := list[0].Asked(); !strings.HasPrefix(got, `Scale geo to 3 replicas. Submit a dict with "cpu" (a number: how much CPU geo uses`) || !strings.HasSuffix(got, `and "slo" (one of met, broken).`) {
		t.Error(got)
	}
	if c, err := list[0].Solution(); err != nil || len(c) != 1 || !strings.HasSuffix(c[0], "-n test-hotel-reservation") {
		t.Errorf("%q, %v", c, err)
	}
	for _, tt := range []struct{ was, is, want string }{
		{"level: L1", "level: L9", `op.yaml:7: goal.level: there is no level "L9"`},
		{"services: [geo]", "services: [goe]", `op.yaml:8: goal: in hotel-reservation there is no service "goe"; did you mean "geo"?`},
		{"{service: geo, replicas: 3}", "{service: goe, replicas: 3}", `op.yaml:11: goal: in hotel-reservation there is no service "goe"`},
		{"is: cpu", "is: gpu", `op.yaml:13: goal.report: there is no number "gpu"`},
		{"value: met", "value: meet", `op.yaml:14: goal.report: slo: the value "meet" is not among the words`},
		{"tasks: [operation]", "tasks: [detection]", `goal: it is for documents with the task operation alone`},
		{"level: L1", "level: L1\n  at_first: {image: x}", "goal.at_first"},
		{"replicas: 3}", "replica: 3}", `replica`},
		{"title: geo", "true_fixes: {restart-everything: it has new pods}\ntitle: geo", "op.yaml:2: true_fixes: a blunt remedy does not make the report"},
		{"level: L1", "level: L1\n  budget: 5", "goal.budget: 5 is no part of the requests that may fail; such is 0.05"},
		{"{service: geo, replicas: 3}", "{service: geo, like: geo, port: 80}", "goal.want: geo is there already"},
		{"{service: geo, replicas: 3}", "{service: geo, port: 80}", "goal.want: port goes with like"},
		{"{service: geo, replicas: 3}", "{service: geo-2, like: goe, port: 80}", `there is no service "goe"; did you mean "geo"?`},
		{"{service: geo, replicas: 3}", "{service: geo-2, like: geo}", "goal.want: geo-2 needs a port between 1 and 65535"},
		{"  report:", "  objectives: [{service: geo, cpu: 0.5}]\n  report:", "goal.objectives: they are for a report with else"},
		{"  report:", "  objectives: [{service: profile, cpu: 0.5}]\n  report:", "goal.objectives: each is of one of goal.services, which are geo"},
		{"{service: geo, replicas: 3}", "{service: Geo_2, like: geo, port: 80}", `goal.want: "Geo_2" is no name for a service`},
	} {
		_, err := l.Parse("op.yaml", []byte(strings.Replace(operation, tt.was, tt.is, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.is, err, tt.want)
		}
	}
}
