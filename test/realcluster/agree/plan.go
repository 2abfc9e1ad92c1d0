package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aiopslab/aiopslab/fault"
)

// The parts of a plan, in the order of their worth.
const (
	mitigations = "mitigation"
	incidents   = "incident"
	operations  = "operation"
	remedies    = "remedy"
)

// row is a run that is made on both clouds.
type row struct {
	Part    string `json:"part"`
	Problem string `json:"problem"`
	Agent   string `json:"agent"`
}

// folder has the plan, what came of it on both sides, and the records.
type folder string

func (f folder) plan() string             { return filepath.Join(string(f), "plan.jsonl") }
func (f folder) side(which string) string { return filepath.Join(string(f), which+".jsonl") }

// makePlan asks the cluster what it can have, and writes down what is to be run.
func makePlan(ctx context.Context, f folder, out io.Writer, call caller) error {
	has := map[string][]string{}
	for _, task := range []string{mitigations, incidents, operations} {
		text, err := call(ctx, "problems", "--suite", task, "--cloud", "kubeconfig", "-o", "json")
		if err != nil {
			return fmt.Errorf("ask for the problems: %w", err)
		}
		var list []struct{ ID, Lacks string }
		if err := json.Unmarshal(text, &list); err != nil {
			return fmt.Errorf("read the problems: %w", err)
		}
		for _, p := range list {
			if p.Lacks == "" {
				has[task] = append(has[task], p.ID)
			} else {
				fmt.Fprintf(out, "not there: %s: %s\n", p.ID, p.Lacks)
			}
		}
	}
	plan := arrange(has)
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return err
	}
	file, err := os.Create(f.plan())
	if err != nil {
		return err
	}
	for _, r := range plan {
		if err := json.NewEncoder(file).Encode(r); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	fmt.Fprintf(out, "%d runs on each side\n", len(plan))
	return file.Close()
}

// arrange is the plan for the problems of each task.
func arrange(has map[string][]string) (plan []row) {
	add := func(part, task string, agents ...string) {
		for _, id := range has[task] {
			for _, agent := range agents {
				plan = append(plan, row{part, id, agent})
			}
		}
	}
	add(mitigations, mitigations, "oracle", "noop")
	add(incidents, incidents, "runbook")
	add(operations, operations, "oracle", "noop")
	add(remedies, mitigations, fault.Remedies...)
	return plan
}

// lines reads a file of JSON lines. One that is not there has none, and what a killed process has left of its last
// line is none either.
func lines[T any](file string) (list []T, err error) {
	r, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer r.Close()
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		if json.Unmarshal(s.Bytes(), &v) == nil {
			list = append(list, v)
		}
	}
	return list, s.Err()
}
