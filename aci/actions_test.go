package aci

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/internal/term"
)

func TestGetLogs(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	for call, want := range map[string][]string{
		`get_logs("shop", "geo")`: {
			"Logs of geo in shop, 2 pods:", "geo-1: Running\n", "[geo-1/geo] 11:58:01 INF hello  [2 times]\n[geo-2/geo] 11:59:10 INF hello\n[geo-1/geo] 11:59:30 ERR no database\n",
		},
		`get_logs("shop", "geo-1", tail=1)`:      {"11:59:30 ERR no database\n", `[The newest 1 of 3 lines. get_logs("shop", "geo-1", tail=3) shows more`},
		`get_logs("shop", "geo", level="error")`: {"1", "ERR no database"},
		`get_logs("shop", "geo", since=1)`:       {"INF hello\n"},
		`get_logs("shop", "rate")`:               {"rate-1: Pending, container rate waits: CrashLoopBackOff (back-off 40s), container rate restarted 3 times, last with exit code 2 (Error); previous=True shows", "(no lines)"},
		`get_logs("shop", "frontend")`:           {"Error: Deployment frontend in shop is scaled to 0 replicas: it has no pods, so there are no logs."},
		`get_logs("shop", "lonely")`:             {"Error: Service lonely in shop exists, but no pod has its name."},
		`get_logs("shop", "goe")`:                {"Error: Your service/namespace does not exist. Use kubectl to check.", "Did you mean geo?"},
		`get_logs("none", "geo")`:                {"Error: Your service/namespace does not exist. Use kubectl to check.", `the application is in "shop"`},
		`get_logs("geo", "shop")`:                {`Error: the namespace comes first: get_logs("shop", "geo").`},
		`get_logs("shop", "geo", tail=-1)`:       {"Error: tail and since must not be negative"},
	} {
		r := do(t, i, call)
		for _, w := range want {
			if !strings.Contains(r.Text, w) {
				t.Errorf("%s: no %q in\n%s", call, w, r.Text)
			}
		}
	}
	if r := do(t, i, `get_logs("shop", "geo", since=1)`); strings.Contains(r.Text, "times]") {
		t.Errorf("since is not heeded:\n%s", r.Text)
	}
}

func TestGetMetrics(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	r := do(t, i, `get_metrics("shop", 5)`)
	golden(t, "metrics.golden", r.Text)
	const file = "/root/metrics_output/metric_20260301_120000/container/kpi_container_cpu_usage_seconds_total.csv"
	want := " timestamp      cmdb_id                          kpi_name value\n1772366340 node-1.geo-1 container_cpu_usage_seconds_total   1.5\n1772366355 node-1.geo-1 container_cpu_usage_seconds_total   2.0\n"
	for _, path := range []string{file, strings.TrimPrefix(file, "/root/"), "../root/" + strings.TrimPrefix(file, "/root/")} {
		if r := do(t, i, `read_metrics("`+path+`")`); r.Text != want {
			t.Errorf("%s: %q", path, r.Text)
		}
	}
	if r := do(t, i, `exec_shell("awk -F, 'NR==2{print $4}' `+file+`")`); r.Text != "1.5\n" {
		t.Errorf("%q", r.Text)
	}
	for call, want := range map[string]string{
		`get_metrics("shop", 0)`:                              "Error: duration must be from 1 to 1440 minutes, not 0",
		`get_metrics("none")`:                                 `There are no metrics of this namespace. The application is in "shop".`,
		`read_metrics("no.csv")`:                              "error: Metrics file 'no.csv' not found.",
		`read_metrics("/")`:                                   "error: Metrics file '/' not found.",
		`read_metrics("/etc")`:                                "Failed to read metrics: ",
		`read_metrics("/../../../../../../../../etc/shadow")`: "not found",
		`read_traces("no.csv")`:                               "error: Traces file 'no.csv' not found.",
	} {
		if r := do(t, i, call); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %q", call, r.Text)
		}
	}
}

func TestGetTraces(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	r := do(t, i, `get_traces("shop")`)
	golden(t, "traces.golden", r.Text)
	if r := do(t, i, `read_traces("trace_output/traces_1772366400.csv")`); !strings.Contains(r.Text, "geo.Geo/Nearby 1772366399001000     8000      True") {
		t.Errorf("%q", r.Text)
	}
	if r := do(t, i, `get_traces("other")`); !strings.Contains(r.Text, ": ask Jaeger for /api/services: 404 Not Found") || strings.Contains(r.Text, os.TempDir()) {
		t.Errorf("%q", r.Text)
	}
}

func TestAlertsAndTopology(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	if r := do(t, i, `get_alerts("shop")`); !strings.Contains(r.Text, "firing  HighRequestErrorRate  critical  service=geo  1m30s  8% fail\n") {
		t.Errorf("%q", r.Text)
	}
	if r := do(t, i, `get_alerts("other")`); r.Text != "There are no alerts about other.\n" {
		t.Errorf("%q", r.Text)
	}
	golden(t, "topology.golden", do(t, i, `get_topology("shop")`).Text)
	if r := do(t, i, `get_topology("other")`); !strings.Contains(r.Text, `there are no services in namespace "other"; the application is in "shop"`) {
		t.Errorf("%q", r.Text)
	}
	// Nothing answers: the agent is told, and nothing breaks.
	i = fake(t, term.Detection, http.NotFoundHandler())
	for _, call := range []string{`get_logs("shop", "geo")`, `get_metrics("shop")`, `get_traces("shop")`, `get_alerts("shop")`, `get_topology("shop")`} {
		if r := do(t, i, call); !strings.HasPrefix(r.Text, "Error: ") || !r.Failed {
			t.Errorf("%s: %+v", call, r)
		}
	}
}

func TestExecShell(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	for _, tt := range []struct{ call, want string }{
		{`exec_shell("echo 'Hello, World!'")`, "Hello, World!\n"},
		{`exec_shell("echo out; echo err >&2; exit 3")`, "out\nerr\n[exit status 3]\n"},
		{`exec_shell("printf x; false")`, "x\n[exit status 1]\n"},
		{`exec_shell("true")`, "[no output]\n"},
		{`exec_shell("echo 'Timeout test'", timeout=5)`, "Timeout test\n"},
		{`exec_shell("cat")`, "[no output]\n"},
		{`exec_shell("kubectl get pods -n shop | awk '{print $3}'")`, "pods\n"},
		{`exec_shell("kubectl patch svc user-service -p '{\"a\": 1}'")`, "kubectl patch svc user-service -p {\"a\": 1}\n"},
		{`exec_shell("kubectl edit svc geo")`, "Error: Cannot use `kubectl edit`. Use `kubectl patch` instead.\n[exit status 1]\n"},
		{`exec_shell("")`, "Error: the command is empty"},
		{`exec_shell("ls", timeout=0)`, "Error: timeout must be at least 1 second, not 0"},
		{`exec_shell("x=7; cd /tmp")`, "[no output]\n"},
		{`exec_shell("echo $x; pwd")`, "7\n/tmp\n"},
	} {
		if r := do(t, i, tt.call); r.Text != tt.want || r.Failed != (strings.HasPrefix(tt.want, "Error: ") && !strings.HasSuffix(tt.want, "]\n")) {
			t.Errorf("%s: %q, want %q", tt.call, r.Text, tt.want)
		}
	}
	r := do(t, i, `exec_shell("sleep 3", timeout=1)`)
	if !regexp.MustCompile(`^Error: Cannot sleep for 3s: [01]s of the time limit are left\.`).MatchString(r.Text) {
		t.Errorf("%q", r.Text)
	}
	r = do(t, i, `exec_shell("echo begun; while :; do :; done", timeout=1)`)
	if !strings.HasPrefix(r.Text, "begun\n[The command was ended after 1 seconds.") || !r.Failed {
		t.Errorf("%q", r.Text)
	}
	if i.Confinement() == "" {
		t.Error("the confinement is not described")
	}
}

// What of a response was not heeded is told once, whatever came of the rest.
func TestNoteOnce(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	for response, want := range map[string]string{
		"exec_shell(\"echo 1\")\nexec_shell(\"echo 2\")": "Note: Only the first API call, exec_shell, was made; write one call at a time.\n1\n",
		"exec_shel(\"echo 1\")\nexec_shell(\"echo 2\")":  "Note: Only the first API call, exec_shel, was made; write one call at a time.\nInvalid action: exec_shel.",
		"get_logs()\nexec_shell(\"echo 2\")":             "Note: Only the first API call, get_logs, was made; write one call at a time.\nError: get_logs: ",
	} {
		action, r := perform(t.Context(), i, fenced(response))
		if !strings.HasPrefix(r.Text, want) || strings.Count(r.Text, "write one call at a time") != 1 || action == "" {
			t.Errorf("%s: %s %q", response, action, r.Text)
		}
	}
	if action, r := perform(t.Context(), i, "hm"); action != "" || !r.Failed || !strings.HasPrefix(r.Text, "Error parsing response") {
		t.Errorf("%s %+v", action, r)
	}
}

// A command ends when its caller cancels it, and says so.
func TestCancelled(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // As soon as the command has begun.
		for {
			if _, err := i.box.Root().Stat("tmp/begun"); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel(errors.New("nobody wants it"))
	}()
	_, r := perform(ctx, i, fenced(`exec_shell("echo begun; echo > /tmp/begun; while :; do :; done", timeout=600)`))
	if r.Text != "begun\n[The command was ended: nobody wants it.]\n" || !r.Failed {
		t.Errorf("%+v", r)
	}
	if r := do(t, i, `exec_shell("echo after")`); r.Text != "after\n" || r.Failed {
		t.Errorf("the shell is of no use afterwards: %+v", r)
	}
}

// A long output is shown in part, and is all there in a file.
func TestLongOutput(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	r := do(t, i, `exec_shell("echo HEAD; seq 1 20000")`)
	if len(r.Text) > MaxOutput+500 || !strings.HasPrefix(r.Text, "HEAD\n1\n2\n") || !strings.HasSuffix(r.Text, "\n19999\n20000\n") {
		t.Errorf("%d bytes: %.100q", len(r.Text), r.Text)
	}
	if !strings.Contains(r.Text, "were left out here. All of it is in /root/outputs/001-exec_shell.txt") {
		t.Errorf("%q", r.Text)
	}
	if r := do(t, i, `exec_shell("wc -l < /root/outputs/001-exec_shell.txt; sed -n 10001p /root/outputs/001-exec_shell.txt")`); r.Text != "20001\n10000\n" {
		t.Errorf("%q", r.Text)
	}
	// The agent cannot turn where it is kept into another place.
	do(t, i, `exec_shell("rm -r /root/outputs; mkdir -p /a/b; ln -s ../../x /a/b/l; mv /a/b/l /root/outputs")`)
	outside := filepath.Join(i.o.Dir, "..", "x")
	if r := do(t, i, `exec_shell("seq 1 20000")`); !strings.Contains(r.Text, "left out here") {
		t.Errorf("%q", r.Text)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file was written outside of the scratch root")
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	for want, o := range map[string]Options{
		`task "repair": use one of detection, localization, analysis, mitigation`: {Task: "repair"},
		"the interface needs": {Task: term.Detection},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// perform does what a response asks for, and says which action that was.
func perform(ctx context.Context, i *Interface, response string) (action string, r Result) {
	c, err := Parse(response)
	if err != nil {
		return "", Result{Failed: true, Text: err.Error()}
	}
	return c.Name, i.Do(ctx, c)
}
