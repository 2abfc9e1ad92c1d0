package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Runs of testdata: with a model; without one, cut off; and before the agent was told anything.
var records = []string{"testdata/model.jsonl", "testdata/cutoff.jsonl", "testdata/early.jsonl"}

func read(t *testing.T, file string) *Run {
	t.Helper()
	r, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeAll(t *testing.T, w Writer, files ...string) {
	t.Helper()
	for _, f := range files {
		if err := w.Write(t.Context(), read(t, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestGolden(t *testing.T) {
	mustCSV := func(w io.Writer, rows Rows) Writer {
		c, err := CSV(w, rows)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, w := range map[string]func(io.Writer) Writer{
		"atif.golden":      func(w io.Writer) Writer { return Stream(w, ATIF) },
		"session.golden":   func(w io.Writer) Writer { return Stream(w, Session) },
		"otlp.golden":      OTLP,
		"runs.csv.golden":  func(w io.Writer) Writer { return mustCSV(w, Runs) },
		"steps.csv.golden": func(w io.Writer) Writer { return mustCSV(w, Steps) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			writeAll(t, w(&b), records...)
			golden(t, name, b.Bytes())
		})
	}
}

// What validators of ATIF v1.7 ask for: required fields, steps numbered from 1, times of ISO 8601, fields that only
// steps of an agent have, and results that belong to calls of their step.
func TestATIFIsValid(t *testing.T) {
	for _, file := range records {
		b, err := json.Marshal(read(t, file).Trajectory())
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Version string `json:"schema_version"`
			Agent   struct{ Name, Version string }
			Steps   []map[string]any
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Version != "ATIF-v1.7" || doc.Agent.Name == "" || doc.Agent.Version == "" || len(doc.Steps) == 0 {
			t.Errorf("%s: %+v", file, doc)
		}
		for i, s := range doc.Steps {
			if s["step_id"] != float64(i+1) {
				t.Errorf("%s: step %d has id %v", file, i+1, s["step_id"])
			}
			if _, err := time.Parse(time.RFC3339, s["timestamp"].(string)); err != nil {
				t.Errorf("%s: step %d: %v", file, i+1, err)
			}
			if _, ok := s["message"].(string); !ok {
				t.Errorf("%s: step %d has no message", file, i+1)
			}
			checkAgentOnly(t, s)
			checkCalls(t, s)
		}
	}
}

func checkAgentOnly(t *testing.T, s map[string]any) {
	t.Helper()
	if s["source"] == "agent" {
		if n, ok := s["llm_call_count"]; ok && n == 0.0 && s["metrics"] != nil {
			t.Errorf("a step without a model has metrics: %v", s)
		}
		return
	}
	for _, k := range []string{"model_name", "reasoning_content", "tool_calls", "metrics", "llm_call_count"} {
		if s[k] != nil {
			t.Errorf("a step of the %v has %s", s["source"], k)
		}
	}
}

func checkCalls(t *testing.T, s map[string]any) {
	t.Helper()
	known := map[any]bool{nil: true}
	calls, _ := s["tool_calls"].([]any)
	for _, c := range calls {
		call := c.(map[string]any)
		known[call["tool_call_id"]] = true
		if _, ok := call["arguments"].(map[string]any); !ok || call["function_name"] == "" {
			t.Errorf("call %v", call)
		}
	}
	if o, ok := s["observation"].(map[string]any); ok {
		for _, r := range o["results"].([]any) {
			if id := r.(map[string]any)["source_call_id"]; !known[id] {
				t.Errorf("a result of call %v, which the step does not have", id)
			}
		}
	}
}

// A line of the file is the spans again, if it is read with OTLP's own messages.
func TestOTLPReadsBack(t *testing.T) {
	for _, file := range records {
		r := read(t, file)
		want := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{r.Spans()}}
		line, err := otlpJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		// The library reads ids as base64, which is how OTLP's JSON differs from others.
		line = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]*)"`).ReplaceAllFunc(line, func(m []byte) []byte {
			parts := strings.Split(string(m), `"`)
			id, err := hex.DecodeString(parts[3])
			if err != nil {
				t.Error(err)
			}
			return []byte(`"` + parts[1] + `":"` + base64.StdEncoding.EncodeToString(id) + `"`)
		})
		var got tracepb.TracesData
		if err := protojson.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		seen := map[string]bool{}
		for i, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
			if len(s.TraceId) != 16 || len(s.SpanId) != 8 || seen[string(s.SpanId)] || (len(s.ParentSpanId) == 0) != (i == 0) {
				t.Errorf("%s: ids of span %d: %x %x %x", file, i, s.TraceId, s.SpanId, s.ParentSpanId)
			}
			if seen[string(s.SpanId)] = true; s.EndTimeUnixNano < s.StartTimeUnixNano {
				t.Errorf("%s: span %d ends before it begins", file, i)
			}
		}
	}
}

// collector is an endpoint that keeps what it is sent, after it has asked for patience once.
type collector struct {
	spans  []*tracepb.Span
	header http.Header
	path   string
	asked  int
	answer func(w http.ResponseWriter)
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.asked++; c.asked == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.header, c.path = r.Header, r.URL.Path
	b, _ := io.ReadAll(r.Body)
	var req traceservice.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, rs := range req.ResourceSpans {
		c.spans = append(c.spans, rs.ScopeSpans[0].Spans...)
	}
	if c.answer != nil {
		c.answer(w)
	}
}

func TestEndpoint(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	e, err := NewEndpoint(server.URL, "Authorization=Basic%20eA==, x-scope = lab")
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, records[0])
	if err := e.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Spans().ScopeSpans[0].Spans, c.spans, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if c.path != "/v1/traces" || c.header.Get("Authorization") != "Basic eA==" || c.header.Get("X-Scope") != "lab" {
		t.Errorf("%s %v", c.path, c.header)
	}
	c.answer = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		b, _ := proto.Marshal(&traceservice.ExportTraceServiceResponse{
			PartialSuccess: &traceservice.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"},
		})
		_, _ = w.Write(b)
	}
	if err := e.Write(t.Context(), r); err == nil || !strings.Contains(err.Error(), "refused 2 spans: too old") {
		t.Errorf("it says %v", err)
	}
	c.answer = func(w http.ResponseWriter) { http.Error(w, "no such\nproject", http.StatusNotFound) }
	if err := e.Write(t.Context(), r); err == nil || !strings.HasSuffix(err.Error(), "answers 404 Not Found: no such project") {
		t.Errorf("it says %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Who waits for an endpoint can be stopped.
func TestEndpointIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		cancel()
	}))
	defer server.Close()
	e, err := NewEndpoint(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(ctx, read(t, records[0])); err == nil {
		t.Error("it was sent")
	}
}

func TestBadEndpoint(t *testing.T) {
	for address, headers := range map[string]string{
		"localhost:4318": "", "ftp://x": "", "http://": "", "http://x\x00": "", "http://x": "no pair", "https://x": "a=%zz",
	} {
		if _, err := NewEndpoint(address, headers); err == nil {
			t.Errorf("%q with %q is taken", address, headers)
		}
	}
}

func TestParquet(t *testing.T) {
	var b bytes.Buffer
	writeAll(t, Parquet(&b, Runs), records...)
	rows, err := parquet.Read[RunRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var want []RunRow
	for _, f := range records {
		want = append(want, runRow(read(t, f))[0].(RunRow))
	}
	for i := range rows { // Parquet's times have no zone.
		rows[i].Began, rows[i].Ended = rows[i].Began.UTC(), rows[i].Ended.UTC()
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	writeAll(t, Parquet(&b, Steps), records...)
	steps, err := parquet.Read[StepRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(steps) != 5 || steps[0].Action != "get_logs" || steps[1].Action != "" {
		t.Errorf("%+v, %v", steps, err)
	}
}

// An empty table has its columns, too.
func TestEmptyTable(t *testing.T) {
	var b bytes.Buffer
	writeAll(t, Parquet(&b, Steps))
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || f.NumRows() != 0 || len(f.Schema().Columns()) != 12 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := Folder(dir, ATIF)
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, records[0])
	if err := f.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "run-1.json")); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"../x", "/x", "a/b", ""} { // A record is a file of somebody.
		r.Record.ID = id
		if err := f.Write(t.Context(), r); err == nil && id != "" {
			t.Errorf("%q is taken for a name", id)
		}
	}
}

// The prompts of a long run are cut from their beginnings.
func TestPromptsAreBounded(t *testing.T) {
	var p prompts
	x := Exchange{}
	x.Messages = read(t, records[0]).Exchanges[0].Messages
	x.Messages[0].Text = strings.Repeat("x", maxPrompt)
	text, left := p.of(&x)
	if left != 1 || len(text) > maxPrompt {
		t.Errorf("%d left out, %d bytes", left, len(text))
	}
	x.Since, x.Kept = 7, 9 // A record that was tampered with.
	if _, left := p.of(&x); left != 1 {
		t.Errorf("%d left out", left)
	}
}
