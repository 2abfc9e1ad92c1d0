package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
)

// TestStage runs one episode after another in one cluster, each on what the one before left behind.
func TestStage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	program, err := exec.LookPath("aiopslab")
	if err != nil {
		t.Fatal(err)
	}
	hotel := find(t, "revoke_auth_mongodb-detection-1").App
	env := &session.Local{Self: []string{program, "tool"}}
	c, err := startFor(ctx, Process(), process.Opening{Dir: t.TempDir(), Log: logs.Or(nil), App: hotel, Seed: 7}, env)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	env.Cloud = c
	if err := env.Keep(ctx, hotel); err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if other := find(t, "noop_detection_social_network-1"); env.Fits(other) {
		t.Errorf("the stage of a hotel fits %s", other.ID)
	}
	wreck := agent.Call("exec_shell", "kubectl delete deployment --all && kubectl delete service frontend && kubectl get deployments")
	look := agent.Call("exec_shell", "kubectl get deployments --no-headers | wc -l")
	alerts := agent.Call("exec_shell", "curl -s http://prometheus-server.observe/api/v1/alerts")
	var ask []string
	for _, c := range pastChecks {
		ask = append(ask, "curl -s 'http://prometheus-server.observe/api/v1/query?query="+url.QueryEscape(c.expr)+"'; echo")
	}
	traces := agent.Call("exec_shell", fmt.Sprintf("curl -s 'http://jaeger:16686/api/traces?service=frontend&limit=1&end=%d'",
		time.Now().Add(-10*time.Minute).UnixMicro()))
	metrics := agent.Call("exec_shell", strings.Join(ask, "; "), 60)
	// Nothing but the role: Kubernetes is to start the service again when its back-off is over.
	grant := agent.Call("exec_shell", "kubectl exec deployment/mongodb-geo -- mongosh admin --quiet -u root -p root --authenticationDatabase admin "+
		`--eval 'db.grantRolesToUser("admin", [{role: "readWrite", db: "geo-db"}])'`)
	flood := agent.Call("exec_shell", "for i in $(seq 150); do curl -s -o /dev/null -m 20 'http://frontend:5000/hotels?inDate=2015-04-09&outDate=2015-04-10&lat=38&lon=-122' & done; wait", 60)
	// What an agent writes into a database, a cache and objects is gone, and what it took away is back. The number of
	// users is the same for a seed.
	mongo := "kubectl exec deployment/mongodb-user -- mongosh user-db --quiet --eval "
	cache := "kubectl exec deployment/memcached-rate -- sh -c "
	stored := agent.Call("exec_shell", mongo+`'print("users", db.user.countDocuments({}), "spoiled", db.spoiled.countDocuments({}))'; `+
		cache+`'printf "get spoiled\r\nquit\r\n" | nc -w 1 127.0.0.1 11211'; kubectl get configmap spoiled; `+
		"kubectl get lease spoiled; kubectl get event spoiled; "+
		"kubectl get deployment/frontend --show-labels --no-headers; kubectl exec deployment/mongodb-user -- ls /data/db/spoiled", 60)
	spoil := agent.Call("exec_shell", mongo+`'db.user.deleteOne({}); db.spoiled.insertOne({a: 1}); db.adminCommand({fsync: 1})'; `+
		cache+`'printf "set spoiled 0 0 7\r\nspoiled\r\nquit\r\n" | nc -w 1 127.0.0.1 11211'; `+
		"kubectl create configmap spoiled --from-literal=a=b; kubectl label deployment/frontend spoiled=yes; "+
		`echo '{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "spoiled"}, `+
		`"spec": {"holderIdentity": "spoiled lease"}}' | kubectl create -f -; `+
		`echo '{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "spoiled"}, "message": "spoiled event", `+
		`"involvedObject": {"kind": "Pod", "name": "spoiled", "namespace": "test-hotel-reservation"}}' | kubectl create -f -; `+
		"kubectl exec deployment/mongodb-user -- touch /data/db/spoiled", 60)
	var unspoiled string
	episodes := []struct {
		problem, does, answer string
		want                  session.Class
		looks                 string // what is to be seen in the beginning
	}{
		{"revoke_auth_mongodb-detection-1", wreck, "Yes", session.Solved, "19"},
		{"revoke_auth_mongodb-detection-1-healthy", wreck, "No", session.Solved, "19"},
		{"revoke_auth_mongodb-detection-1-healthy", flood, "Yes", session.AgentFailed, "19"},
		{"revoke_auth_mongodb-mitigation-1", grant, "", session.Solved, "19"},
	}
	for i, e := range episodes {
		start := time.Now()
		s := session.Session{
			Problem: find(t, e.problem), Agent: agent.Entry{Name: "outside"}, Environment: env, Results: t.TempDir(), Seed: 7,
		}
		var injected time.Time
		s.Progress = func(_ string, data any) {
			if p, ok := data.(record.Phase); ok {
				t.Logf("%s: %s", e.problem, p.Name)
				if p.Name == "injecting" {
					injected = time.Now()
				}
			}
		}
		l := s.Open(ctx)
		if _, err := l.Briefing(ctx); err != nil {
			o, werr := l.Wait(ctx)
			t.Fatal(err, o, werr)
		}
		t.Logf("%s: ready after %v", e.problem, time.Since(start))
		noTruth(t, s.Results)
		looks := []string{alerts, traces, look}
		if i == 0 || i == len(episodes)-1 {
			looks = append(looks, metrics)
		}
		switch i {
		case 0:
			looks = append(looks, stored, spoil, stored)
		case 1:
			looks = append(looks, stored)
		}
		seen := 0
		for _, response := range append(looks, e.does, submission(e.answer)) {
			turn, err := l.Step(ctx, response)
			if err != nil {
				t.Fatal(err)
			}
			if response == alerts {
				noAlertBefore(t, e.problem, turn.Observation, injected)
			}
			if response == metrics {
				hasPast(t, e.problem, turn.Observation)
			}
			if response == traces && !strings.Contains(turn.Observation, `"traceID"`) {
				t.Errorf("%s: no trace is ten minutes old: %s", e.problem, turn.Observation)
			}
			if response == stored {
				now := storedWords(turn.Observation)
				switch {
				case i == 0 && seen == 0:
					unspoiled = now
					if !regexp.MustCompile(`users [1-9]\d* spoiled 0 END`).MatchString(now) {
						t.Fatalf("before anything the stores say %s", turn.Observation)
					}
				case i == 0:
					for _, sign := range []string{"spoiled 1", "VALUE spoiled", "spoiled=yes", "spoiled lease", "spoiled event"} {
						if !strings.Contains(now, sign) {
							t.Fatalf("the stores were not spoiled: %s", turn.Observation)
						}
					}
				case now != unspoiled:
					t.Errorf("the stores say\n%s\nand said before the first episode\n%s", now, unspoiled)
				}
				seen++
			}
			if response == look && !strings.Contains(turn.Observation, e.looks) {
				t.Errorf("%s: %s deployments are expected, there are %s", e.problem, e.looks, turn.Observation)
			}
			if last := turn.Action == "submit"; turn.Over != last {
				t.Errorf("%s: after %s the run is over: %v", e.problem, turn.Action, turn.Over)
			}
		}
		if _, err := l.Step(ctx, look); !errors.Is(err, session.ErrOver) {
			t.Errorf("a step after the end: %v", err)
		}
		o, err := l.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		isolated(t, o.Record, i)
		t.Logf("%s: %s after %v: %s", e.problem, o.Verdict.Class, time.Since(start), o.Verdict.Why)
		if o.Verdict.Class != e.want {
			t.Errorf("%s, submitted %s: %s, %s", e.problem, e.answer, o.Verdict.Class, o.Verdict.Why)
		}
	}
}

// ages are how old kubectl says that an object is.
var ages = regexp.MustCompile(`\b(\d+[dhms])+\b`)

// storedWords is what stores say, without what is of the moment.
func storedWords(text string) string {
	return strings.Join(strings.Fields(ages.ReplaceAllString(text, "")), " ")
}

// isolated looks whether a record tells what has kept its run apart from so many before.
func isolated(t *testing.T, file string, before int) {
	t.Helper()
	rec, err := record.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := record.Isolation{Mode: record.IsolatedFresh}
	if before > 0 {
		want = record.Isolation{Mode: record.IsolatedReset, Before: before, Compared: true}
	}
	for _, e := range rec.Events {
		var got record.Isolation
		if e.Kind == record.IsolationEvent {
			err := e.Decode(&got)
			if got.Why != "" { // A busy machine may be late: it must be told, and whoever needs a proof has none.
				t.Logf("not as it was: %s", got.Why)
				got.Compared, got.Why = !got.Compared, ""
			}
			if err != nil || got != want {
				t.Errorf("the record says %+v, %v, want %+v", got, err, want)
			}
			return
		}
	}
	t.Error("the record does not say how the run was kept apart")
}

// pastChecks hold when the metrics of a system have a past: each expression has a result.
var pastChecks = []struct{ what, expr string }{
	{"there are six hours of samples", `min(count_over_time(up{job="kubernetes-cadvisor"}[6h])) > 4200`},
	{"the front end served all the time", `count(sum(rate(http_requests_total[2m] offset 10m)) > 1 and sum(rate(http_requests_total[2m] offset 5h)) > 1)`},
	{"counters go on", `sum(resets(http_requests_total[2m])) == 0`},
	{"the rate is one", `sum(rate(http_requests_total[2m])) / sum(rate(http_requests_total[2m] offset 3m)) < 2 > 0.5`},
	{"alerts have fired", `count(count_over_time(ALERTS{alertstate="firing",alertname=~"HighRequest(Rate|Latency)"}[24h]))`},
	{"processes are as old as their pods", `count(process_start_time_seconds{job="kubernetes-pods"} < time() - 100) > 6`},
}

// hasPast looks whether all of pastChecks hold.
func hasPast(t *testing.T, problem, answers string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(answers), "\n")
	if len(lines) != len(pastChecks) {
		t.Errorf("%s: %d answers of Prometheus: %s", problem, len(lines), answers)
		return
	}
	for i, c := range pastChecks {
		if !strings.Contains(lines[i], `"value":[`) {
			t.Errorf("%s: not true that %s: %s is %s", problem, c.what, c.expr, lines[i])
		}
	}
}

// noAlertBefore looks for alerts that began before a time: those are left from the start.
func noAlertBefore(t *testing.T, problem, alerts string, begin time.Time) {
	t.Helper()
	var answer struct {
		Status string
		Data   struct {
			Alerts []struct {
				Labels   map[string]string
				ActiveAt time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(alerts), &answer); err != nil || answer.Status != "success" {
		t.Errorf("%s: no alerts can be read: %v: %s", problem, err, alerts)
	}
	for _, a := range answer.Data.Alerts {
		if a.ActiveAt.Before(begin) || strings.HasSuffix(problem, "-healthy") {
			t.Errorf("%s: the agent finds an alert that began %v before the fault: %v", problem, begin.Sub(a.ActiveAt), a.Labels)
		}
	}
}

func submission(answer string) string {
	if answer == "" {
		return agent.Call("submit")
	}
	return agent.Call("submit", answer)
}

// noTruth looks for what an agent must not find in a record while it works.
func noTruth(t *testing.T, results string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(results, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d records, %v", len(files), err)
	}
	rec, err := record.Read(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rec.Events {
		switch e.Kind {
		case record.ProblemEvent, record.FaultEvent, record.BaselineEvent, record.NoiseEvent, record.DecoyEvent,
			record.SeverityEvent, record.TransactionEvent:
			t.Errorf("the agent could read %s %s", e.Kind, e.Data)
		case record.PhaseEvent:
			if strings.Contains(string(e.Data), "injecting") {
				t.Error("the agent could read how long ago the injection was")
			}
		}
	}
	if rec.Seed != 0 {
		t.Error("the agent could read the seed, and tell what of the world is made up")
	}
}

func find(t *testing.T, id string) *problem.Problem {
	t.Helper()
	p, err := problemtest.Library(t).Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
