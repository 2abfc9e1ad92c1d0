package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An MCP client starts the server, learns of the tools while the cluster is still coming up, looks
// around and submits. The verdict is the exit status.
func TestMCP(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("", "lab") // Not t.TempDir: the name of a socket cannot be long.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	var stderr bytes.Buffer
	cmd := exec.Command("aiopslab", "mcp", "misconfig_app_hotel_res-detection-1", "--results", t.TempDir())
	cmd.Env = append(os.Environ(), "AIOPSLAB_TMPDIR="+tmp)
	cmd.Stderr = &stderr
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if strings.Contains(client.InitializeResult().Instructions, "misconfig") {
		t.Error("the instructions name the problem, and so the answer")
	}
	tools, err := client.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) < 5 {
		t.Errorf("tools: %v, %v", tools, err)
	}
	var failed bool
	call := func(name string, args map[string]any) string {
		t.Helper()
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		failed = res.IsError
		return res.Content[0].(*mcp.TextContent).Text
	}
	if got := call("exec_shell", map[string]any{"command": "kubectl get pods"}); !strings.Contains(got, "frontend-") || failed {
		t.Errorf("kubectl says %s", got)
	}
	if got := call("get_logs", map[string]any{"service": "geo"}); !strings.Contains(got, "argument missing: namespace") || !failed {
		t.Errorf("a wrong call: %s", got)
	}
	cancelled, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := client.CallTool(cancelled, &mcp.CallToolParams{Name: "exec_shell", Arguments: map[string]any{"command": "while :; do :; done", "timeout": 600}}); err == nil {
		t.Error("an endless command has an end")
	}
	if got := call("exec_shell", map[string]any{"command": "echo free"}); got != "free\n" { // The other one has ended.
		t.Errorf("after a call that was cancelled: %s", got)
	}
	if got := call("submit", map[string]any{"has_anomaly": "Yes"}); !strings.Contains(got, "VALID_SUBMISSION") {
		t.Errorf("submit says %s", got)
	}
	if got := call("get_alerts", map[string]any{"namespace": "shop"}); !strings.Contains(got, "The run is over") {
		t.Errorf("after the end: %s", got)
	}
	if err := client.Close(); err != nil {
		t.Errorf("the server exits with %v", err)
	}
	if !strings.Contains(stderr.String(), "SOLVED") {
		t.Errorf("no verdict in\n%s", stderr.String())
	}
}

// The client's user is asked about what the policy has approved, in the newest protocol and in an older one. The
// asking is in the record, and counted.
func TestMCPAsks(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"2026-07-28", "2025-06-18"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			testMCPAsks(t, protocol)
		})
	}
}

func testMCPAsks(t *testing.T, protocol string) {
	tmp, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	results := t.TempDir()
	var stderr bytes.Buffer
	cmd := exec.Command("aiopslab", "mcp", "noop_detection_hotel_reservation-1", "--policy", "careful", "--approver", "ask", "--results", results)
	cmd.Env = append(os.Environ(), "AIOPSLAB_TMPDIR="+tmp)
	cmd.Stderr = &stderr
	var mu sync.Mutex
	var asked []string
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked = append(asked, r.Params.Message); len(asked) == 1 {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": false, "reason": "not in the daytime"}}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	}).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	call := func(name string, args map[string]any) string {
		t.Helper()
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	shell := func(command string) string {
		t.Helper()
		return call("exec_shell", map[string]any{"command": command, "timeout": 300})
	}
	if got := shell("kubectl create configmap note --from-literal=a=b"); !strings.Contains(got, "note created") || len(asked) > 0 {
		t.Errorf("it says %s, and was asked %q", got, asked)
	}
	if got := shell("kubectl delete configmap note"); !strings.Contains(got, "it was not: not in the daytime") {
		t.Errorf("it says %s", got)
	}
	if got := shell("kubectl delete configmap note"); !strings.Contains(got, "deleted") {
		t.Errorf("it says %s", got)
	}
	call("submit", map[string]any{"has_anomaly": "No"})
	if err := client.Close(); err != nil {
		t.Errorf("the server exits with %v\n%s", err, stderr.String())
	}
	if len(asked) != 2 || !strings.HasPrefix(asked[1], "The agent wants to delete configmaps note in ") || !strings.Contains(asked[1], "\nRisk: high, because ") {
		t.Errorf("it was asked %q", asked)
	}
	for _, want := range []string{
		`"by":"the MCP client's user"`, `"why":"not in the daytime"`, `"asked":2`, `"approved":1`, `"ask_approval":2`, `"policy":"careful"`,
	} {
		if !recorded(results, want) {
			t.Errorf("no %s in the record", want)
		}
	}
}

// Ctrl-C ends the run and the server with it, though the client has not left.
func TestMCPInterrupted(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	results := t.TempDir()
	var stderr bytes.Buffer
	cmd := exec.Command("aiopslab", "mcp", "noop_detection_hotel_reservation-1", "--results", results)
	cmd.Env = append(os.Environ(), "AIOPSLAB_TMPDIR="+tmp)
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	deadline := time.After(patience)
	for !recorded(results, `"kind":"briefing"`) {
		select {
		case err := <-exited:
			t.Fatalf("it exits before the run: %v\n%s", err, stderr.String())
		case <-deadline:
			t.Fatal("the run does not begin")
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-exited:
	case <-time.After(patience):
		_ = stdin.Close() // With the client it ends anyway.
		<-exited
		t.Error("it goes on serving after the run")
	}
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("it exits with %d, want 5 for a run without a verdict", got)
	}
	if !recorded(results, `"kind":"verdict"`) || !strings.Contains(stderr.String(), "INCONCLUSIVE  interrupted") {
		t.Errorf("it says\n%s", stderr.String())
	}
}

// recorded reports whether a record in the directory has a text.
func recorded(dir, text string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}
