package page

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// keep writes telemetry of the first 12 seconds of a run, as --keep-telemetry does.
func keep(t testing.TB, dir, id string) {
	t.Helper()
	at := func(s int) int64 { return begun.Unix() + int64(s) }
	var cpu, errors strings.Builder
	cpu.WriteString("timestamp,cmdb_id,kpi_name,value\n")
	errors.WriteString("timestamp,cmdb_id,kpi_name,value\n")
	for i := range 3 {
		fmt.Fprintf(&cpu, "%d,node-1.geo-7d-x,container_cpu_usage_seconds_total,%d\n", at(5*i), 10*i)
		fmt.Fprintf(&errors, "%d,frontend,http_errors,%d\n", at(5*i), 3*i)
	}
	tables := map[string]string{
		"metric/container/kpi_container_cpu_usage_seconds_total.csv": cpu.String(),
		"metric/service/kpi_http_errors.csv":                         errors.String(),
		"trace/traces_1.csv": fmt.Sprintf(`trace_id,span_id,parent_span,service_name,operation_name,start_time,duration,has_error,response
t1,s1,ROOT,frontend,HTTP GET /hotels,%d000000,400000,False,200
t1,s2,s1,geo,geo.Geo/Nearby,%d100000,200000,True,500
t2,s3,ROOT,frontend,HTTP GET /user,%d000000,9000,False,200
`, at(10), at(10), at(10)),
		"log/log_1.csv": fmt.Sprintf(`log_id,timestamp,date,pod_name,container_name,namespace,node_name,message
geo/1,%d,%s,geo-7d-x,geo,test-hotel,node-1,"{""level"":""error"",""msg"":""<b>cannot log in</b>""}"
`, at(10), begun.Add(10*time.Second).Format(time.RFC3339)),
	}
	kept := session.TelemetryDir(filepath.Join(dir, id+".jsonl"))
	for name, text := range tables {
		file := filepath.Join(kept, name+".gz")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(session.Telemetry{From: begun, To: begun.Add(12 * time.Second), Step: 5, App: "hotel-reservation"})
	if err == nil {
		err = os.WriteFile(filepath.Join(kept, session.TelemetryFile), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTelemetry(t *testing.T) {
	dir := t.TempDir()
	shortly("run-1", "react").ended("revoke-mitigation-1", "solved", "well", nil).save(t, dir)
	shortly("run-2", "react").ended("revoke-mitigation-1", "solved", "well", nil).save(t, dir)
	keep(t, dir, "run-1")
	v := visit(t, Options{Dir: dir})
	has(t, v.get(Prefix+"runs/run-2"), "has kept no logs, metrics and traces", "--keep-telemetry")
	ask := func(at, query string) string {
		return v.get(Prefix + "runs/run-1?" + url.Values{"at": {at}, "query": {query}}.Encode())
	}
	page := ask("10", `rate(container_cpu_usage_seconds_total{pod=~"geo-.*"}[15s])`)
	has(t, page, "&lt;b&gt;cannot log in&lt;/b&gt;", `class="error"`, "HTTP GET /hotels", "✗ failed", `class="span bad"`,
		`class="chart"`, "{instance=&#34;node-1&#34;, pod=&#34;geo-7d-x&#34;} <b>1.333</b>")
	lacks(t, page, "has kept no", "<b>cannot log in")
	if strings.Index(page, "HTTP GET /hotels") > strings.Index(page, "HTTP GET /user") {
		t.Error("what failed is not the first")
	}
	has(t, ask("5", "http_errors"), "http_errors{service=&#34;frontend&#34;} <b>3</b>")
	has(t, ask("5", "sum(http_errors) * 2"), "{} <b>6</b>")
	has(t, ask("5", "nothing_like_it"), "No series match")
	has(t, ask("5", "rate("), `role="alert"`, "parse error")
	has(t, ask("5", strings.Repeat("x", maxQuery+1)), "2000 characters at most")
	has(t, ask("20", "http_errors"), "kept until the agent's turn, 22:00:12 UTC", "<b>6</b>")
	has(t, v.get(Prefix+"runs/run-1?at=10&trace=t2"), "HTTP GET /user")
	broken := filepath.Join(dir, "run-1.telemetry", "log", "log_1.csv.gz")
	if err := os.WriteFile(broken, []byte("no gzip"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := visit(t, Options{Dir: dir})
	has(t, again.get(Prefix+"runs/run-1"), "cannot be read")
}
