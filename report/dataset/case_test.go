package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/record"
)

// aSet makes a data set of a run with a fault, and of one without.
func aSet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := Set{Dir: filepath.Join(dir, "incidents")}
	for id, faults := range map[string][]record.Fault{"r1": {{Kind: "pod_kill", Target: "geo"}}, "r2": nil} {
		if err := s.Add(aRun(t, dir, id, faults...)); err != nil {
			t.Fatal(err)
		}
	}
	return s.Dir
}

// What was made of a run can be read back: as it is, and where RCAEval's programs look for it.
func TestOpenCase(t *testing.T) {
	dir := aSet(t)
	names, err := Names(dir)
	if err != nil || !cmp.Equal(names, []string{"r1", "r2"}) {
		t.Fatalf("%v, %v", names, err)
	}
	foreign, err := Names(filepath.Join(dir, rcaevalDir))
	if err != nil || !cmp.Equal(foreign, []string{"hotel/geo_pod-kill/1"}) {
		t.Fatalf("%v, %v", foreign, err)
	}
	ours, err := OpenCase(dir, "r1")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := OpenCase(filepath.Join(dir, rcaevalDir), foreign[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Case{ours, theirs} {
		if begin, end := c.Window(); !begin.Equal(from) || !end.Equal(from.Add(10*time.Second)) {
			t.Errorf("%s: from %v to %v", c.Name, begin, end)
		}
		if got := c.Truth.Answer.Components; len(got) != 1 || got[0].Name != "geo" {
			t.Errorf("%s: %+v", c.Name, got)
		}
		if diff := cmp.Diff(lines(t, ours), lines(t, c)); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
	if diff := cmp.Diff([]string{
		"log geo error no, not 00:00:03.25", "log geo  ready 00:00:04",
		"span t1 s1  frontend 4ms false", "span t1 s2 s1 geo 2ms true", "span t2 s3  frontend 8ms true",
		"span t0 s0  frontend 1µs false",
	}, lines(t, ours)); diff != "" {
		t.Error(diff)
	}
	well, err := OpenCase(dir, "r2")
	if err != nil || len(well.Truth.Faults) != 0 {
		t.Errorf("%+v, %v", well, err)
	}
	if names := serviceNames(theirs); !strings.Contains(names, "geo") || !strings.Contains(names, "frontend") {
		t.Errorf("the services of a case without topology are %s", names)
	}
}

func serviceNames(c *Case) string {
	var names []string
	for _, s := range c.Services() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// lines are the logs and spans of a case.
func lines(t *testing.T, c *Case) (list []string) {
	t.Helper()
	err := c.Logs(func(service string, l observe.LogLine) {
		text := l.Text
		if strings.Contains(text, "no, not") {
			text = "no, not"
		}
		list = append(list, fmt.Sprintln("log", service, l.Level, text, l.Time.Format("15:04:05.999")))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Spans(func(s aci.ArchivedSpan) {
		list = append(list, fmt.Sprintln("span", s.Trace, s.ID, s.Parent, s.Service, s.Duration, s.Failed))
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// An agent that reads exports gets the interval that it asks for, in their layout, with counters for rates.
func TestCaseExport(t *testing.T) {
	c, err := OpenCase(aSet(t), "r1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := c.Export(agent.Interval{From: from.Add(2 * time.Second), To: from.Add(time.Minute)}, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"metric/container/kpi_container_memory_working_set_bytes.csv": "timestamp,cmdb_id,kpi_name,value\n1767225605,geo-0,container_memory_working_set_bytes,1500\n",
		"log/log_0.csv": "log_id,timestamp,date,pod_name,container_name,namespace,node_name,message\n" +
			"0,1767225603,2026-01-01T00:00:03Z,geo-0,geo,,,\"{\"\"level\"\":\"\"error\"\",\"\"msg\"\":\"\"no, not\"\"}\"\n" +
			"1,1767225604,2026-01-01T00:00:04Z,geo-0,geo,,,ready\n",
		"trace/traces_0.csv": "trace_id,span_id,parent_span,service_name,operation_name,start_time,duration,has_error,response\n" +
			"t2,s3,,frontend,HTTP GET /hotels,1767225602000000,8000,True,\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	cpu, err := os.ReadFile(filepath.Join(dir, "metric/container/kpi_container_cpu_usage_seconds_total.csv"))
	if err != nil || !strings.Contains(string(cpu), "1767225610,geo-0,container_cpu_usage_seconds_total,2\n") {
		t.Errorf("after 5 s of 0.4 cores: %v\n%s", err, cpu)
	}
}

func TestCaseIsBroken(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"no time":   {"cases/r1/metrics.csv", "geo_cpu\n1\n", "metrics.csv: it has no column time"},
		"bad time":  {"cases/r1/metrics.csv", "time,geo_cpu\nnow,1\n", `metrics.csv: line 2: "now" is no time in seconds`},
		"no rows":   {"cases/r1/metrics.csv", "time,geo_cpu\n", "its metrics have no samples"},
		"empty":     {"cases/r1/metrics.csv", "", "metrics.csv: it has no header: EOF"},
		"ragged":    {"cases/r1/metrics.csv", "time,geo_cpu\n1,1\n2\n", "wrong number of fields"},
		"no truth":  {"truth/r1/truth.json", "x", "invalid character"},
		"no inject": {"rcaeval/hotel/geo_pod-kill/1/inject_time.txt", "soon", "inject_time.txt: it is to have a time in seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := aSet(t)
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			set, id := dir, "r1"
			if strings.HasPrefix(tt.file, rcaevalDir) {
				set, id = filepath.Join(dir, rcaevalDir), "hotel/geo_pod-kill/1"
			}
			if _, err := OpenCase(set, id); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	for _, name := range []string{"../r1", "r3", ""} {
		if _, err := OpenCase(aSet(t), name); err == nil {
			t.Errorf("%q is opened", name)
		}
	}
	if _, err := Names(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no incident in it") {
		t.Errorf("got %v", err)
	}
}
