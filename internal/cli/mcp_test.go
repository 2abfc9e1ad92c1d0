package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An MCP client starts the server, learns of the tools while the cluster is still coming up, looks
// around and submits. The verdict is the exit status.
func TestMCP(t *testing.T) {
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
	call := func(name string, args map[string]any) string {
		t.Helper()
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	if got := call("exec_shell", map[string]any{"command": "kubectl get pods"}); !strings.Contains(got, "frontend-") {
		t.Errorf("kubectl says %s", got)
	}
	if got := call("get_logs", map[string]any{"service": "geo"}); !strings.Contains(got, "argument missing: namespace") {
		t.Errorf("a wrong call: %s", got)
	}
	if got := call("submit", map[string]any{"has_anomaly": "Yes"}); !strings.Contains(got, "VALID_SUBMISSION") {
		t.Errorf("submit says %s", got)
	}
	if got := call("get_alerts", nil); !strings.Contains(got, "The run is over") {
		t.Errorf("after the end: %s", got)
	}
	if err := client.Close(); err != nil {
		t.Errorf("the server exits with %v", err)
	}
	if !strings.Contains(stderr.String(), "SOLVED") {
		t.Errorf("no verdict in\n%s", stderr.String())
	}
}
