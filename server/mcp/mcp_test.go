package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/server/mcp"
	"github.com/aiopslab/aiopslab/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a run that is over once the agent has submitted.
type fake struct {
	observation string
	ready       chan struct{} // closed when the agent has its turn
	asked       chan struct{} // has something in it when somebody waits for that
	acting      chan struct{} // closed when a command runs that takes long
	ended       chan struct{} // closed when that has ended

	mu    sync.Mutex
	steps []string
	over  bool
}

func newFake(ready bool) *fake {
	f := &fake{
		ready: make(chan struct{}), asked: make(chan struct{}, 1), observation: "observed",
		acting: make(chan struct{}), ended: make(chan struct{}),
	}
	if ready {
		close(f.ready)
	}
	return f
}

func (f *fake) Briefing(ctx context.Context) (agent.Briefing, error) {
	select {
	case f.asked <- struct{}{}:
	default:
	}
	select {
	case <-f.ready:
		return agent.Briefing{}, nil
	case <-ctx.Done():
		return agent.Briefing{}, ctx.Err()
	}
}

func (f *fake) Step(ctx context.Context, response string) (session.Turn, error) {
	if strings.Contains(response, "sleep") {
		close(f.acting)
		<-ctx.Done()
		close(f.ended)
		return session.Turn{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return session.Turn{}, session.ErrOver
	}
	f.steps = append(f.steps, response)
	f.over = strings.Contains(response, "submit(")
	return session.Turn{Step: record.Step{Observation: f.observation, Failed: strings.Contains(response, "fails")}, Over: f.over}, nil
}

var options = mcp.Options{Task: term.Localization, App: hotel.App(), Version: "v1"}

// connect has a client in memory.
func connect(t testing.TB, s *mcp.Server, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	return connectAs(t, s, "", o)
}

// connectAs has one that speaks a protocol.
func connectAs(t testing.TB, s *mcp.Server, protocol string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Stdio(context.Background(), toServer, fromServer) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, o).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient},
		&sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return c
}

func text(t testing.TB, r *sdk.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.(*sdk.TextContent).Text)
	}
	return b.String()
}

// A client learns of the tools and of the problem while the run is still being prepared.
func TestListedAtOnce(t *testing.T) {
	c := connect(t, mcp.New(newFake(false), options), nil)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*sdk.Tool{}
	for _, tool := range list.Tools {
		got[tool.Name] = tool
	}
	for _, a := range aci.Actions(options.Task) {
		tool := got[a.Name]
		if tool == nil {
			t.Errorf("there is no tool %s", a.Name)
			continue
		}
		delete(got, a.Name)
		var want any
		if err := json.Unmarshal(a.Schema(), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, tool.InputSchema); d != "" {
			t.Errorf("schema of %s (-want +got):\n%s", a.Name, d)
		}
		if !strings.HasPrefix(tool.Description, a.Doc) {
			t.Errorf("%s is described as %q", a.Name, tool.Description)
		}
		if tool.Annotations.ReadOnlyHint != (a.Kind == aci.Read) {
			t.Errorf("%s: readOnlyHint is %v, the action is one to %s", a.Name, tool.Annotations.ReadOnlyHint, a.Kind)
		}
	}
	if len(got) > 0 {
		t.Errorf("there are tools that are no actions: %v", got)
	}

	res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: mcp.BriefingURI})
	if err != nil {
		t.Fatal(err)
	}
	briefing := res.Contents[0].Text
	if instructions := c.InitializeResult().Instructions; instructions != briefing {
		t.Errorf("the instructions are not the briefing but %q", instructions)
	}
	for _, want := range []string{"the names of the services in which the root cause lies", "test-hotel-reservation", "submit"} {
		if !strings.Contains(briefing, want) {
			t.Errorf("no %q in %s", want, briefing)
		}
	}
	if strings.Contains(briefing, "```") {
		t.Errorf("it tells how to write calls as text: %s", briefing)
	}
}

func TestRun(t *testing.T) {
	run := newFake(true)
	c := connect(t, mcp.New(run, options), nil)
	call := func(name string, args any) (string, bool) {
		t.Helper()
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		return text(t, r, err), r.IsError
	}
	if got, bad := call("get_logs", map[string]any{"namespace": "test-hotel-reservation", "service": "geo"}); got != "observed" || bad {
		t.Errorf("got %q, error %v", got, bad)
	}
	if got, bad := call("submit", map[string]any{"faulty_components": []string{"geo"}}); !strings.HasPrefix(got, "observed\nThe run is over.") || bad {
		t.Errorf("got %q, error %v", got, bad)
	}
	if got, bad := call("get_alerts", map[string]any{"namespace": "shop"}); got != "The run is over. There is nothing more to do." || !bad {
		t.Errorf("after the end: got %q, error %v", got, bad)
	}
	want := []string{
		"```\nget_logs(namespace=\"test-hotel-reservation\", service=\"geo\")\n```",
		"```\nsubmit(faulty_components=[\"geo\"])\n```",
	}
	if d := cmp.Diff(want, run.steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_truth"})
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); !ok || rpc.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("an unknown tool: %v", err)
	}
}

// A call that fails is an error to the client. One with wrong arguments costs no step, and has no need
// to wait.
func TestErrors(t *testing.T) {
	run := newFake(false)
	c := connect(t, mcp.New(run, options), nil)
	for _, tt := range []struct {
		name string
		args any
		want string
	}{
		{"get_logs", map[string]any{"service": "geo"}, "argument missing: namespace"},
		{"get_logs", map[string]any{"namespace": "a", "service": 3}, "service must be a string"},
		{"get_logs", map[string]any{"namespace": "a", "service": "b", "tial": 3}, "Did you mean tail?"},
		{"get_logs", []string{"a", "b"}, "must be a JSON object"},
		{"exec_shell", nil, "argument missing: command"},
		{"exec_shell", map[string]any{"command": map[string]any{"a": "b"}}, "command must be a string"},
		{"submit", nil, "argument missing: faulty_components"},
	} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tt.name, Arguments: tt.args})
		if got := text(t, r, err); !strings.Contains(got, tt.want) || !r.IsError {
			t.Errorf("%s %v: %q, error %v", tt.name, tt.args, got, r.IsError)
		}
	}
	if len(run.steps) > 0 {
		t.Errorf("steps were taken: %v", run.steps)
	}
	close(run.ready)
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "exec_shell", Arguments: map[string]any{"command": "fails"}})
	if got := text(t, r, err); got != "observed" || !r.IsError {
		t.Errorf("%q, error %v", got, r.IsError)
	}
}

// Cancelling a call ends the command that it runs.
func TestCancel(t *testing.T) {
	run := newFake(true)
	c := connect(t, mcp.New(run, options), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-run.acting
		cancel()
	}()
	if _, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "exec_shell", Arguments: map[string]any{"command": "sleep 100"}}); err == nil {
		t.Error("it was answered")
	}
	<-run.ended
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_alerts", Arguments: map[string]any{"namespace": "shop"}})
	if got := text(t, r, err); got != "observed" || r.IsError {
		t.Errorf("afterwards: %q, error %v", got, r.IsError)
	}
}

// A call before the agent's turn waits for it, and tells who asked for progress.
func TestWaits(t *testing.T) {
	run := newFake(false)
	s := mcp.New(run, options)
	s.SetTick(time.Millisecond)
	var once sync.Once
	c := connect(t, s, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if r.Params.ProgressToken == "p" && strings.Contains(r.Params.Message, "being prepared") {
				once.Do(func() { close(run.ready) })
			}
		},
	})
	p := &sdk.CallToolParams{Name: "get_alerts", Arguments: map[string]any{"namespace": "shop"}}
	p.SetProgressToken("p")
	r, err := c.CallTool(t.Context(), p)
	if got := text(t, r, err); got != "observed" {
		t.Errorf("got %q", got)
	}
}

// handshake is what a client says first, and a call.
var handshake = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_alerts","arguments":{"namespace":"shop"}}}`,
}

// deaf is the output to a client that has gone.
type deaf struct{ err error }

func (d deaf) Write([]byte) (int, error) { return 0, d.err }

// A client that goes ends the server, though a call still waits and whether or not answers are still read.
func TestClientLeaves(t *testing.T) {
	for name, out := range map[string]io.Writer{
		"it still reads":       io.Discard,
		"a pipe in memory":     deaf{io.ErrClosedPipe},
		"a pipe of the system": deaf{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}},
	} {
		t.Run(name, func(t *testing.T) {
			in, client := io.Pipe()
			served := make(chan error, 1)
			go func() {
				defer in.Close()
				served <- mcp.New(newFake(false), options).Stdio(t.Context(), in, out)
			}()
			for _, line := range handshake {
				if _, err := io.WriteString(client, line+"\n"); err != nil {
					break // The server has gone, since nobody reads what it says.
				}
			}
			client.Close()
			select {
			case err := <-served:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the server goes on")
			}
		})
	}
}

// The end of the context ends the server, though the client says nothing and a call still waits.
func TestStopped(t *testing.T) {
	in, client := io.Pipe()
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	run := newFake(false)
	go func() { served <- mcp.New(run, options).Stdio(ctx, in, io.Discard) }()
	for _, line := range handshake {
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	<-run.asked
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server goes on")
	}
}

func TestHTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run := newFake(true)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- mcp.New(run, options).HTTP(ctx, l, "secret") }()
	endpoint := "http://" + l.Addr().String() + mcp.Path
	hc := &http.Client{Transport: &http.Transport{}}
	defer hc.CloseIdleConnections()

	for header, want := range map[string]int{
		"":              http.StatusUnauthorized,
		"Bearer wrong":  http.StatusUnauthorized,
		"Bearer secret": http.StatusOK,
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(handshake[0]))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		res, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("with %q: %s", header, res.Status)
		}
	}

	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearer{hc.Transport}}, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_alerts", Arguments: map[string]any{"namespace": "shop"}})
	if got := text(t, r, err); got != "observed" {
		t.Errorf("got %q", got)
	}
	c.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// bearer adds the token.
type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return b.next.RoundTrip(r)
}

// BenchmarkCall is what the way through the protocol adds to an action, with an observation as long as
// they get.
func BenchmarkCall(b *testing.B) {
	run := newFake(true)
	run.observation = strings.Repeat("x", aci.MaxOutput)
	c := connect(b, mcp.New(run, options), nil)
	for b.Loop() {
		r, err := c.CallTool(b.Context(), &sdk.CallToolParams{Name: "get_logs", Arguments: map[string]any{"namespace": "shop", "service": "geo"}})
		if len(text(b, r, err)) != aci.MaxOutput {
			b.Fatal("the observation is not whole")
		}
	}
}

// A client of an incident submits answers of any form, and is told that questions follow.
func TestIncident(t *testing.T) {
	f := newFake(true)
	c := connect(t, mcp.New(f, mcp.Options{Task: term.Incident, App: hotel.App(), Version: "v1"}), nil)
	if told := c.InitializeResult().Instructions; !strings.Contains(told, "returns the next one") || strings.Contains(told, "it ends the run") || aci.Asked(told) != term.Detection {
		t.Error(told)
	}
	for _, answer := range []any{"Yes", []string{"geo"}, map[string]string{"system_level": "Application", "fault_type": "Code Defect"}, nil} {
		f.over = false
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "submit", Arguments: map[string]any{"answer": answer}})
		if got := text(t, r, err); r.IsError || !strings.HasPrefix(got, "observed") {
			t.Errorf("%v: %s", answer, got)
		}
	}
	if len(f.steps) != 4 || !strings.Contains(f.steps[1], `submit(answer=["geo"])`) {
		t.Error(f.steps)
	}
}
