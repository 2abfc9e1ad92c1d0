// Package records makes records of runs that never were, for benchmarks of what reads many of them.
package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/record"
)

// Begun is when the first run began; each of the others began a minute after the one before.
var Begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The sizes of a run as they are in real records: steps with what was observed, and looks at the system in the end.
const (
	steps       = 8
	observation = 1500
	looks       = 8
	look        = 5000
)

// Fill writes as many records into a directory, each of about 60 kB, in folders of a thousand.
func Fill(dir string, runs int) error {
	for i := range runs {
		id := fmt.Sprintf("%s-%012x", Begun.Add(time.Duration(i)*time.Minute).Format("20060102-150405"), i)
		folder := filepath.Join(dir, fmt.Sprint(i/1000))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, id+".jsonl"), one(id, i, steps), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Long writes the record of one run of so many steps into a directory, and returns its id.
func Long(dir string, steps int) (id string, err error) {
	id = fmt.Sprintf("%s-long", Begun.Add(-time.Minute).Format("20060102-150405"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return id, os.WriteFile(filepath.Join(dir, id+".jsonl"), one(id, 0, steps), 0o644)
}

// one is the record of one run.
func one(id string, i, steps int) []byte {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	at := Begun.Add(time.Duration(i) * time.Minute)
	write := func(v any) { _ = lines.Encode(v) } // A buffer takes all.
	write(map[string]any{"format": record.Format, "version": record.Version, "id": id, "agent": "react", "time": at})
	seq := 0
	event := func(kind string, data any) {
		seq++
		at = at.Add(time.Second)
		encoded, _ := json.Marshal(data)
		write(record.Event{Seq: seq, Time: at, Kind: kind, Data: encoded})
	}
	event(record.PhaseEvent, record.Phase{Name: "agent"})
	for n := range steps {
		event(record.StepEvent, record.Step{
			Number: n + 1, Response: `exec_shell("kubectl get pods -A")`, Action: "exec_shell",
			Observation: strings.Repeat("geo-5d8f7 1/1 Running 0\n", observation/24),
		})
	}
	event(record.SubmissionEvent, record.Submission{Submitted: true, Answer: json.RawMessage(`["geo"]`)})
	event(record.ProblemEvent, map[string]any{
		"id": fmt.Sprintf("pod_kill_hotel_res-localization-%d", i%40), "task": "localization", "seed": i + 1,
		"app": "hotel-reservation", "faults": []string{"pod_kill geo"},
	})
	for range looks {
		workloads := strings.Split(strings.Repeat("deployment/geo ", look/18), " ")
		event(record.LookEvent, map[string]any{"workloads": workloads})
	}
	results := map[string]any{
		"TTL": 30 + i%60, "in_tokens": 4000, "out_tokens": 400, "writes": 0, "model": "a-model", "cost_usd": 0.01,
	}
	event(record.VerdictEvent, map[string]any{
		"class": []string{"solved", "agent"}[i%2], "why": "the answer is what it is", "results": results,
	})
	return b.Bytes()
}
