package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// shellCalls are what is timed in the agent's shell.
var shellCalls = []struct {
	command string
	times   int
	most    float64 // milliseconds
}{
	{"true", 50, 5},
	{"kubectl get pods", 20, 500},
}

// benchShell measures exec_shell, as the record has it, and what the process of an idle shell takes.
func benchShell(ctx context.Context, r *run) error {
	results := filepath.Join(r.dir, "shell")
	cmd := exec.Command(r.binary, "mcp", wayProblem, "--results", results, "--max-steps", "1000")
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	call := func(name string, arguments map[string]any) error {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err == nil && res.IsError {
			err = errors.New(name + " failed")
		}
		return err
	}
	// It waits for the cluster.
	if err := call("exec_shell", map[string]any{"command": "kubectl version"}); err != nil {
		return err
	}
	for _, c := range shellCalls {
		for range c.times {
			if err := call("exec_shell", map[string]any{"command": c.command}); err != nil {
				return err
			}
		}
	}
	memory, err := shellMemory(r.binary)
	if err != nil {
		return err
	}
	if err := errors.Join(call("submit", map[string]any{"has_anomaly": "No"}), session.Close()); err != nil {
		return err
	}
	file, err := onlyRecord(results)
	if err != nil {
		return err
	}
	steps, err := stepsOf(file)
	if err != nil {
		return err
	}
	steps = steps[1:]
	for _, c := range shellCalls {
		q := measure.Of("ms")
		for _, s := range steps[:c.times] {
			q.Add(1000 * s.Took)
		}
		steps = steps[c.times:]
		r.report(measure.Row{
			What: "exec_shell(\"" + c.command + "\"), median", Value: q,
			Target: measure.AtMost(c.most),
		})
	}
	r.report(measure.Row{
		What:  "the agent's shell, idle: private memory",
		Value: measure.Of("MB", megabytes(memory.Private)), Target: measure.AtMost(40),
	})
	return nil
}

// shellMemory is what the process of a binary that is an agent's shell takes.
func shellMemory(binary string) (m measure.Memory, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return m, err
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.HasSuffix(line, []byte(filepath.Base(binary)+"\x00tool\x00shell\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return m, err
		}
		return measure.MemoryOf(pid)
	}
	return m, errors.New("there is no process of a shell")
}
