package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/session"
)

// away is a place that is not far: another process of this machine, with the standard streams alone.
type away struct {
	dials []int
	died  error // instead of how it ended
}

func (a *away) String() string { return "away" }

func (a *away) Run(ctx context.Context, in io.Reader, answers, words io.Writer) error {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=none")
	cmd.Env = append(os.Environ(), "PROCESS_TEST=apart")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, answers, words
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if a.died != nil {
		return a.died
	}
	return err
}

func (a *away) Dial(ctx context.Context, port int) (net.Conn, error) {
	a.dials = append(a.dials, port)
	var d net.Dialer
	return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

func startAway(t *testing.T, a *away) *Environment {
	t.Helper()
	e, err := Start(Options{Place: a, Dir: t.TempDir(), grace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// What an environment elsewhere tells of its own machine works on this one: the address of its API, and the files of its
// telemetry. What it prints does not get between its answers.
func TestAway(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "it is me") }))
	defer api.Close()
	t.Setenv("PROCESS_TEST_API", api.URL)
	a := &away{}
	e := startAway(t, a)
	if err := e.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	admitted, err := e.Prepare(t.Context(), session.Setting{Problem: problemtest.Find(t, "revoke_auth_mongodb-detection-1")},
		func(string, any) {})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(admitted.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host == api.URL {
		t.Fatalf("the kubeconfig has %s, which is another machine's", config.Host)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	r, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r.Body); string(b) != "it is me" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	r.Body.Close()
	dir, err := e.Export(t.Context(), agent.Interval{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "metrics", "up.csv")); string(b) != "up\n1\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if filepath.Dir(dir) != e.Dir {
		t.Errorf("the telemetry is in %s", dir)
	}
	if err := e.Dismiss(t.Context()); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(config.Host, "http://")); err == nil {
		c.Close()
		t.Error("who was dismissed still gets to the API")
	}
	if len(a.dials) != 1 {
		t.Errorf("%d connections", len(a.dials))
	}
}

// An agent whose action was under way has not ended an environment that its machine has ended.
func TestAwayDeath(t *testing.T) {
	for _, c := range []struct {
		died error
		want session.Class
		why  string
	}{
		{nil, session.AgentFailed, "the agent's action ended the environment: this is no answer (exit status 7)"},
		{&session.Death{Why: "OOMKilled", Exhausted: true}, session.AgentFailed, "the agent's action ended the environment: OOMKilled"},
		{&session.Death{Why: "its node is gone", Outside: true}, session.Infra, "its node is gone"},
	} {
		s := session.Session{
			Problem: problemtest.Find(t, "revoke_auth_mongodb-detection-1"), Results: t.TempDir(),
			Environment: startAway(t, &away{died: c.died}),
			Agent: agent.Entry{Name: "a", New: func(agent.Briefing) (agent.Agent, error) {
				return agent.Func(func(context.Context, string) (string, error) { return "exit", nil }), nil
			}},
		}
		o, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Verdict.Class != c.want || !strings.Contains(o.Verdict.Why, c.why) {
			t.Errorf("%s: %s, want %s, %s", o.Verdict.Class, o.Verdict.Why, c.want, c.why)
		}
	}
}
