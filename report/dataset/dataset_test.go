package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/report/export"
	"github.com/aiopslab/aiopslab/session"
)

var from = time.Unix(1767225600, 0).UTC()

// The tables of a run, as observe writes them.
var kpis = map[string]string{
	"metric/container/kpi_container_cpu_usage_seconds_total.csv": `timestamp,cmdb_id,kpi_name,value
1767225600,node-1.geo-7d-x,container_cpu_usage_seconds_total,10.0
1767225605,node-1.geo-7d-x,container_cpu_usage_seconds_total,11.0
1767225610,node-1.geo-7d-x,container_cpu_usage_seconds_total,2.0
1767225600,node-1.geo-7d-y,container_cpu_usage_seconds_total,1.0
1767225605,node-1.geo-7d-y,container_cpu_usage_seconds_total,2.0
1767225600,node-2.mongodb-geo-0,container_cpu_usage_seconds_total,5.0
1767225605,node-2.mongodb-geo-0,container_cpu_usage_seconds_total,5.5
1767225600,node-2.stranger-0,container_cpu_usage_seconds_total,5.0
1767225605,node-2.stranger-0,container_cpu_usage_seconds_total,9.0
`,
	"metric/container/kpi_container_memory_working_set_bytes.csv": `timestamp,cmdb_id,kpi_name,value
1767225605,node-1.geo-7d-x,container_memory_working_set_bytes,1000.0
1767225605,node-1.geo-7d-x,container_memory_working_set_bytes,500.0
1767225999,node-1.geo-7d-x,container_memory_working_set_bytes,1.0
`,
	"metric/container/kpi_container_network_receive_bytes_total.csv": `timestamp,cmdb_id,kpi_name,value
1767225600,node-1.geo-7d-x,container_network_receive_bytes_total.eth0,0.0
1767225605,node-1.geo-7d-x,container_network_receive_bytes_total.eth0,50.0
`,
	"metric/service/kpi_http_latency_50.csv": `timestamp,cmdb_id,kpi_name,value
1767225600,frontend,http_latency_50,0.5
1767225605,frontend,http_latency_50,NaN
`,
	"metric/service/kpi_grpc_latency_50.csv": `timestamp,cmdb_id,kpi_name,value
1767225600,frontend,grpc_latency_50,0.25
`,
	"metric/service/kpi_http_requests.csv": `timestamp,cmdb_id,kpi_name,value
1767225600,frontend,http_requests,2.0
1767225605,frontend,http_requests,0.0
`,
	"metric/service/kpi_grpc_requests.csv": `timestamp,cmdb_id,kpi_name,value
1767225600,frontend,grpc_requests,3.0
`,
	"trace/traces_1.csv": `trace_id,span_id,parent_span,service_name,operation_name,start_time,duration,has_error,response
t1,s1,ROOT,frontend,HTTP GET /hotels,1767225601000000,4000,False,200
t1,s2,s1,geo,geo.Geo/Nearby,1767225601001000,2000,True,500
t2,s3,ROOT,frontend,HTTP GET /hotels,1767225602000000,8000,True,Unknown
t0,s0,ROOT,frontend,HTTP GET /hotels,1767225000000000,1,False,200
`,
	"log/log_1.csv": `log_id,timestamp,date,pod_name,container_name,namespace,node_name,message
geo-7d-x/geo/1,1767225603,2026-01-01T00:00:03.250Z,geo-7d-x,geo,test-hotel,node-1,"{""level"":""error"",""msg"":""no, not""}"
geo-7d-x/geo/2,1767225604,2026-01-01T00:00:04.000Z,geo-7d-x,geo,test-hotel,node-1,ready
`,
}

// aRun makes a record in a directory, with telemetry, and reads it.
func aRun(t *testing.T, dir, id string, faults ...record.Fault) *export.Run {
	t.Helper()
	file := filepath.Join(dir, id+".jsonl")
	log, err := record.Create(file, record.Run{ID: id, Agent: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	var answer problem.Answer
	for _, f := range faults {
		kinds = append(kinds, f.Kind+" "+f.Target)
		answer.Components = append(answer.Components, problem.Component{Name: f.Target})
	}
	err = errors.Join(
		log.Append(record.ProblemEvent, map[string]any{"id": "p-detection-1", "task": "detection", "app": "hotel", "faults": kinds, "answer": answer, "seed": 7}),
		log.AppendAt(from.Add(6*time.Second), record.PhaseEvent, record.Phase{Name: injecting}))
	for _, f := range faults {
		err = errors.Join(err, log.Append(record.FaultEvent, f))
	}
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	kept := session.TelemetryDir(file)
	for name, text := range kpis {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(text))
		err = errors.Join(err, z.Close())
		write(t, filepath.Join(kept, name+".gz"), b.Bytes(), err)
	}
	b, err := json.Marshal(session.Telemetry{
		From: from, To: from.Add(12 * time.Second), Step: 5, App: "hotel", Namespace: "test-hotel",
		Services: []session.TelemetryService{{Name: "frontend", Calls: []string{"geo"}}, {Name: "geo"}, {Name: "mongodb-geo"}},
	})
	write(t, filepath.Join(kept, session.TelemetryFile), b, err)
	r, err := export.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// write writes a file of data that was made without an error.
func write(t *testing.T, file string, data []byte, err error) {
	t.Helper()
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

var revoked = record.Fault{Kind: "revoke_auth", Target: "mongodb-geo", Symptom: "it is refused", Time: from.Add(8 * time.Second)}

func TestCase(t *testing.T) {
	dir := t.TempDir()
	s := Set{Dir: filepath.Join(dir, "set")}
	r := aRun(t, dir, "run-1", revoked)
	for range 2 { // Again is no other case.
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"cases/run-1/simple_metrics.csv": `time,frontend_error,frontend_latency-50,frontend_workload,geo_cpu,geo_mem,mongodb-geo_cpu
1767225600,0,0.5,5,,,
1767225605,0,,0,0.4,1500,0.1
1767225610,,,,0.4,,
`,
		"cases/run-1/logs.csv": `time,timestamp,container_name,message,level,req_path,error,pod_name,node_name
00:00,1767225603250000000,geo,"{""level"":""error"",""msg"":""no, not""}",error,,"{""level"":""error"",""msg"":""no, not""}",geo-7d-x,node-1
00:00,1767225604000000000,geo,ready,,,,geo-7d-x,node-1
`,
		"cases/run-1/traces.csv": `time,traceID,spanID,serviceName,methodName,operationName,startTimeMillis,startTime,duration,statusCode,parentSpanID
00:00,t1,s1,frontend,hotels,HTTP GET /hotels,1767225601000,1767225601000000,4000,0,
00:00,t1,s2,geo,Nearby,geo.Geo/Nearby,1767225601001,1767225601001000,2000,500,s1
00:00,t2,s3,frontend,hotels,HTTP GET /hotels,1767225602000,1767225602000000,8000,2,
23:50,t0,s0,frontend,hotels,HTTP GET /hotels,1767225000000,1767225000000000,1,0,
`,
		"truth/run-1/inject_time.txt":                                "1767225606\n",
		"rcaeval/hotel/mongodb-geo_revoke-auth/1/inject_time.txt":    "1767225606\n",
		"rcaeval/hotel/mongodb-geo_revoke-auth/1/simple_metrics.csv": "",
	} {
		got, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(want, string(got)); want != "" && diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	metrics, err := os.ReadFile(filepath.Join(s.Dir, "cases/run-1/metrics.csv"))
	if err != nil || !strings.Contains(string(metrics), ",geo_net-rx,") {
		t.Errorf("%s, %v", metrics, err)
	}
	var truth Truth
	b, err := os.ReadFile(filepath.Join(s.Dir, "truth/run-1/truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &truth); err != nil {
		t.Fatal(err)
	}
	want := Truth{
		Case: "run-1", Problem: "p-detection-1", App: "hotel", Seed: 7, Faults: []record.Fault{revoked}, Injected: 1767225606,
		Answer: problem.Answer{Components: []problem.Component{{Name: "mongodb-geo"}}},
	}
	if diff := cmp.Diff(want, truth); diff != "" {
		t.Error(diff)
	}
	if list, err := filepath.Glob(filepath.Join(s.Dir, "rcaeval/hotel/*/*")); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// What can be seen of a case does not tell what is right, nor when it began.
func TestTruthIsApart(t *testing.T) {
	dir := t.TempDir()
	s := Set{Dir: filepath.Join(dir, "set")}
	if err := s.Add(aRun(t, dir, "run-1", revoked)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Join(s.Dir, "cases"), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		for _, secret := range []string{"1767225606", "revoke", "p-detection-1", "refused"} {
			if strings.Contains(string(b)+name[len(s.Dir):], secret) {
				t.Errorf("%s has %s", name, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A second case of the same fault has the next number, and a healthy system none.
func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	s := Set{Dir: filepath.Join(dir, "set")}
	for i, faults := range [][]record.Fault{{revoked}, {revoked}, nil} {
		if err := s.Add(aRun(t, dir, fmt.Sprintf("run-%d", i), faults...)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := filepath.Glob(filepath.Join(s.Dir, "rcaeval/*/*/*"))
	if len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "truth/run-2/inject_time.txt")); err == nil {
		t.Error("a healthy system has a time of injection")
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "truth/run-2/truth.json")); err != nil {
		t.Error(err)
	}
}

func TestNoCase(t *testing.T) {
	dir := t.TempDir()
	s := Set{Dir: filepath.Join(dir, "set")}
	r := aRun(t, dir, "run-1", revoked)
	kept := session.TelemetryDir(r.File)
	table := filepath.Join(kept, "log/log_1.csv.gz")
	for _, c := range []struct {
		name, want string
		spoil      func() error
	}{
		{"id", "is no name for a directory", func() error { r.Record.ID = "../run-1"; return nil }},
		{"no fault showed", "1 of 2 faults showed", func() error { r.Record.ID, r.Truth.Faults = "run-1", []string{"a", "b"}; return nil }},
		{"cut off", "unexpected EOF", func() error { r.Truth.Faults = []string{"a"}; return os.Truncate(table, 40) }},
		{"another table", "it has the columns", func() error {
			b, err := os.ReadFile(filepath.Join(kept, "trace/traces_1.csv.gz"))
			return errors.Join(err, os.WriteFile(table, b, 0o644))
		}},
		{"no truth", "does not tell what was wrong", func() error { r.Truth.ID = ""; return nil }},
		{"no time", "no time that makes sense", func() error {
			return os.WriteFile(filepath.Join(kept, session.TelemetryFile), []byte(`{"step_seconds":1e-9}`), 0o644)
		}},
		{"none", "has kept no telemetry", func() error { return os.RemoveAll(kept) }},
	} {
		if err := c.spoil(); err != nil {
			t.Fatal(err)
		}
		if err := s.Add(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*")); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

// What was kept can be read table by table.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	aRun(t, dir, "run-1", revoked)
	kept, err := Open(filepath.Join(dir, "run-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var logs []Log
	var spans []Span
	samples := map[string]int{}
	if err := errors.Join(
		kept.Logs(func(l Log) { logs = append(logs, l) }),
		kept.Spans(func(s Span) { spans = append(spans, s) }),
		kept.Samples(func(_ time.Time, of, metric string, _ float64) { samples[of+" "+metric]++ }),
	); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Log{from.Add(4 * time.Second), "geo-7d-x", "geo", "ready"}, logs[1]); d != "" {
		t.Error(d)
	}
	want := Span{
		"t1", "s2", "s1", "geo", "geo.Geo/Nearby", from.Add(1001 * time.Millisecond), 2 * time.Millisecond, true,
	}
	if d := cmp.Diff(want, spans[1]); d != "" || spans[0].Parent != "" {
		t.Error(d, spans[0])
	}
	if samples["node-1.geo-7d-x container_cpu_usage_seconds_total"] != 3 || samples["frontend http_requests"] != 2 {
		t.Error(samples)
	}
	if _, err := Open(filepath.Join(dir, "run-2.jsonl")); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}
