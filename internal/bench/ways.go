package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// childCommand makes this program an agent that the lab runs, see childAgent.
	childCommand = "child-agent"

	wayProblem = "noop_detection_hotel_reservation-1"
	wayActions = 50 // of which the median is taken
)

// getLogs is the action that is timed.
var getLogs = map[string]any{"namespace": "test-hotel-reservation", "service": "frontend", "tail": 20}

// benchWays measures what each way for an agent to come in adds to an action: the time from asking to
// having the observation, less what the action itself took, which is in the record.
func benchWays(ctx context.Context, r *run) error {
	for _, w := range []struct {
		name string
		run  func(context.Context, *run) (measure.Quantity, error)
	}{{"HTTP", overHTTP}, {"MCP", overMCP}, {"a child process", overPipes}} {
		added, err := w.run(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		r.report(measure.Row{
			What: "get_logs over " + w.name + ": added, median", Value: added,
			Target: measure.AtMost(3),
		})
	}
	for _, e := range []struct {
		language, file, from string
		most                 float64
	}{
		{"Go", "examples/glance/main.go", "package main\n", 30},
		{"Python", "clients/python/examples/agent.py", "class Agent:\n", 15},
	} {
		n, err := codeLines(e.file, e.from)
		if err != nil {
			return err
		}
		r.report(measure.Row{
			What:  "an agent in " + e.language + ", registered: lines",
			Value: measure.Of("", float64(n)), Target: measure.AtMost(e.most),
		})
	}
	return nil
}

// codeLines counts the lines of a file behind a line that are not empty.
func codeLines(file, from string) (n int, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, code, ok := strings.Cut(string(b), from)
	if !ok {
		return 0, fmt.Errorf("%s has no line %q", file, from)
	}
	for line := range strings.Lines(code) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n, nil
}

// overHTTP acts through a server and its worker.
func overHTTP(ctx context.Context, r *run) (q measure.Quantity, err error) {
	s, err := r.serve(ctx)
	if err != nil {
		return q, err
	}
	defer s.close()
	var session struct{ ID string }
	if err := s.call(ctx, http.MethodPost, "/sessions",
		map[string]any{"problem": wayProblem, "max_steps": wayActions + 1}, &session); err != nil {
		return q, err
	}
	at := "/sessions/" + session.ID
	if err := s.call(ctx, http.MethodGet, at+"/problem", nil, nil); err != nil {
		return q, err
	}
	var asked []time.Duration
	for range wayActions {
		start := time.Now()
		if err := s.call(ctx, http.MethodPost, at+"/act", map[string]any{"name": "get_logs", "arguments": getLogs},
			nil); err != nil {
			return q, err
		}
		asked = append(asked, time.Since(start))
	}
	var outcome struct{ Record string }
	if err := s.call(ctx, http.MethodPost, at+"/submit", map[string]any{"answer": "No"}, &outcome); err != nil {
		return q, err
	}
	return added(outcome.Record, asked)
}

// overMCP acts through an MCP server on its standard input and output.
func overMCP(ctx context.Context, r *run) (q measure.Quantity, err error) {
	results := filepath.Join(r.dir, "mcp")
	cmd := exec.Command(r.binary, "mcp", wayProblem, "--results", results, "--max-steps", fmt.Sprint(wayActions+1))
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		return q, err
	}
	defer session.Close()
	var asked []time.Duration
	for range wayActions {
		start := time.Now()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "get_logs", Arguments: getLogs})
		if err != nil {
			return q, err
		}
		if res.IsError {
			return q, errors.New("get_logs failed")
		}
		asked = append(asked, time.Since(start))
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{
		Name:      "submit",
		Arguments: map[string]any{"has_anomaly": "No"},
	}); err != nil {
		return q, err
	}
	if err := session.Close(); err != nil {
		return q, err
	}
	file, err := onlyRecord(results)
	if err != nil {
		return q, err
	}
	// The first call waits for the cluster.
	return added(file, asked)
}

// overPipes has an agent that is a child process: what it takes to answer at once is in the record.
func overPipes(ctx context.Context, r *run) (q measure.Quantity, err error) {
	self, err := os.Executable()
	if err != nil {
		return q, err
	}
	results := filepath.Join(r.dir, "child")
	cmd := exec.CommandContext(ctx, r.binary, "run", wayProblem, "--agent",
		fmt.Sprintf("exec:'%s' %s", self, childCommand),
		"--results", results, "--max-steps", fmt.Sprint(wayActions+1), "-o", "json")
	if out, err := cmd.CombinedOutput(); err != nil {
		return q, fmt.Errorf("%w: %s", err, lastLine(string(out)))
	}
	file, err := onlyRecord(results)
	if err != nil {
		return q, err
	}
	steps, err := stepsOf(file)
	if err != nil {
		return q, err
	}
	q = measure.Of("ms")
	for _, s := range steps {
		q.Add(1000 * s.Thought)
	}
	return q, nil
}

// childAgent is an agent that asks for logs, and then submits.
func childAgent() error {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 16<<20)
	for n := 0; in.Scan(); {
		var m struct{ Type string }
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return err
		}
		if m.Type != "observation" {
			continue
		}
		call := map[string]any{"type": "call", "name": "get_logs", "arguments": getLogs}
		if n++; n > wayActions {
			call = map[string]any{"type": "call", "name": "submit", "arguments": map[string]any{"has_anomaly": "No"}}
		}
		if err := out.Encode(call); err != nil {
			return err
		}
	}
	return in.Err()
}

// added is what asking took beyond the actions themselves, which are the first steps of a record.
func added(file string, asked []time.Duration) (measure.Quantity, error) {
	q := measure.Of("ms")
	steps, err := stepsOf(file)
	if err != nil {
		return q, err
	}
	if len(steps) < len(asked) {
		return q, fmt.Errorf("%s has %d steps of %d", file, len(steps), len(asked))
	}
	for i, a := range asked {
		q.Add(1000 * (a.Seconds() - steps[i].Took))
	}
	return q, nil
}

func stepsOf(file string) ([]record.Step, error) {
	rec, err := record.Read(file)
	if err != nil {
		return nil, err
	}
	return rec.Steps()
}

// onlyRecord is the one record in a directory.
func onlyRecord(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("%s has %d records", dir, len(files))
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}
