package hierarchy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// invitation is what a user is told; it can be waited for.
type invitation struct {
	mu   sync.Mutex
	text strings.Builder
	told chan struct{}
}

func newInvitation() *invitation { return &invitation{told: make(chan struct{}, 10)} }

func (i *invitation) Write(b []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.text.Write(b)
	i.told <- struct{}{}
	return len(b), nil
}

var invited = regexp.MustCompile(`(?s)mcp add --transport http (\S+) (\S+) --header "Authorization: Bearer (\S+)"`)

// withKey shows a key with every request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// joined is a client that has joined, as it was invited.
func (i *invitation) accept(t *testing.T) (client *sdk.ClientSession, url string, key string) {
	t.Helper()
	select {
	case <-i.told:
	case <-time.After(time.Minute):
		t.Error("nobody was invited")
		return nil, "", ""
	}
	i.mu.Lock()
	m := invited.FindStringSubmatch(i.text.String())
	i.mu.Unlock()
	if m == nil {
		t.Errorf("the invitation is %q", i.text.String())
		return nil, "", ""
	}
	c, err := comeIn(t, m[2], m[3])
	if err != nil {
		t.Error(err)
	}
	return c, m[2], m[3]
}

func comeIn(t *testing.T, url, key string) (*sdk.ClientSession, error) {
	t.Helper()
	return sdk.NewClient(&sdk.Implementation{Name: "guest", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: withKey(key)}, MaxRetries: -1, DisableStandaloneSSE: true,
		}, nil)
}

// call calls a tool, and returns what it says.
func call(ctx context.Context, c *sdk.ClientSession, name string, args map[string]any) (text string, failed bool) {
	r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	for _, part := range r.Content {
		if p, ok := part.(*sdk.TextContent); ok {
			text += p.Text
		}
	}
	return text, r.IsError
}

// An MCP client is a maintainer: it is told who it is, gets its messages, has the lab's calls but for the submission,
// reports, and in the end is told that it is over.
func TestMCPMember(t *testing.T) {
	for _, m := range []mode{manager, peers} {
		t.Run(string(m), func(t *testing.T) {
			i := newInvitation()
			var wg sync.WaitGroup
			var said []string
			wg.Go(func() {
				c, _, _ := i.accept(t)
				if c == nil {
					return
				}
				defer c.Close()
				if text := c.InitializeResult().Instructions; !strings.Contains(text, "after that one alone: db.") {
					t.Errorf("the instructions are %q", text)
				}
				list, err := c.ListTools(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				names := map[string]bool{}
				for _, tool := range list.Tools {
					names[tool.Name] = true
				}
				if !names["next_message"] || !names["exec_shell"] || !names["report_result"] || names["submit"] ||
					names["send_message"] != (m == peers) {
					t.Errorf("the tools are %v", names)
				}
				if text, failed := call(t.Context(), c, "exec_shell", map[string]any{"command": "kubectl get pods"}); !failed || !strings.Contains(text, "next_message") {
					t.Errorf("a call before any message: %s", text)
				}
				for {
					text, failed := call(t.Context(), c, "next_message", map[string]any{"wait": 60})
					said = append(said, text)
					if failed {
						return
					}
					if text, failed = call(t.Context(), c, "exec_shell", map[string]any{}); !failed || !strings.Contains(text, "command") {
						t.Errorf("a call without arguments: %s", text)
					}
					text, _ = call(t.Context(), c, "exec_shell", map[string]any{"command": "kubectl get pods -l app=db"})
					said = append(said, text)
					text, failed = call(t.Context(), c, "report_result", map[string]any{"message": "I am a guest, and I am well."})
					if failed {
						t.Errorf("the report: %s", text)
					}
				}
			})
			r := play(t, options{mode: m, guests: map[string]string{"db": byMCP}, listen: defaultListen, tell: i},
				agent.Briefing{Task: problem.Localization, Steps: 60}, shop)
			wg.Wait()
			all := strings.Join(said, "\n")
			if r.err != nil || len(r.answers) != 1 || !strings.Contains(r.talk(), "I am a guest, and I am well.") {
				t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
			}
			if !strings.Contains(all, ":\n> ") || !strings.Contains(all, "(no output)") || !strings.Contains(all, "nothing more to do") {
				t.Errorf("the guest was told %s", all)
			}
			if !r.did("[db] ```\nexec_shell(command=\"kubectl get pods -l app=db\")") && !r.did(`exec_shell(command="kubectl get pods -l app=db")`) {
				t.Errorf("nobody did what it called: %v", r.steps)
			}
			for _, member := range r.group.Members {
				if (member.At == byMCP) != (member.Name == "db") {
					t.Errorf("the record has %+v", member)
				}
			}
		})
	}
}

// Who has not the key of a seat gets nothing, and a client that does not do its part is lost while others go on.
func TestBadMCPMembers(t *testing.T) {
	begin := func(ctx context.Context, c *sdk.ClientSession) {
		call(ctx, c, "next_message", map[string]any{"wait": 60})
	}
	for name, act := range map[string]func(ctx context.Context, t *testing.T, c *sdk.ClientSession, url, key string){
		"never comes": func(context.Context, *testing.T, *sdk.ClientSession, string, string) {},
		"hangs":       func(ctx context.Context, _ *testing.T, c *sdk.ClientSession, _, _ string) { begin(ctx, c) },
		"goes on and on": func(ctx context.Context, _ *testing.T, c *sdk.ClientSession, _, _ string) {
			begin(ctx, c)
			for range 2 * maxTurns {
				call(ctx, c, "exec_shell", map[string]any{"command": "kubectl get pods"})
			}
		},
		"floods": func(ctx context.Context, _ *testing.T, c *sdk.ClientSession, _, _ string) {
			begin(ctx, c)
			for range 400 {
				call(ctx, c, "next_message", nil)
			}
		},
		"sends too much": func(ctx context.Context, _ *testing.T, c *sdk.ClientSession, _, _ string) {
			begin(ctx, c)
			call(ctx, c, "report_result", map[string]any{"message": strings.Repeat("x", 10<<20)})
		},
		"forges": func(ctx context.Context, t *testing.T, c *sdk.ClientSession, url, key string) {
			for _, forged := range []string{"", "x", key[1:], key + "x"} {
				if _, err := comeIn(t, url, forged); err == nil {
					t.Errorf("the key %q was let in", forged)
				}
			}
			if _, err := comeIn(t, strings.Replace(url, "/mcp/db", "/mcp/pay", 1), key); err == nil {
				t.Error("it got the seat of another")
			}
			resp, err := http.Post(url, "application/json", strings.NewReader("{}"))
			if err != nil || resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("without a key: %v, %v", resp, err)
			} else {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInvitation()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				c, url, key := i.accept(t)
				if c == nil {
					return
				}
				defer c.Close()
				act(ctx, t, c, url, key)
				<-ctx.Done()
			})
			o := options{
				mode: manager, patience: 2 * time.Second, guests: map[string]string{"db": byMCP}, listen: defaultListen, tell: i,
			}
			r := play(t, o, agent.Briefing{Task: problem.Detection, Steps: 100}, shop)
			cancel()
			wg.Wait()
			if r.err != nil || len(r.answers) != 1 {
				t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
			}
			if !strings.Contains(r.talk(), "db -> manager (issue): the maintainer does not work any more: it does not do its part") {
				t.Error(r.talk())
			}
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		})
	}
}

// A key of one's own is not told, and is in no record.
func TestMCPKey(t *testing.T) {
	env := map[string]string{"AIOPSLAB_MEMBER_TOKEN_DB": "s3cret-of-the-db"}
	o := options{mode: manager, env: func(name string) string { return env[name] }, listen: defaultListen}
	o, err := o.read("member=db@mcp,listen=127.0.0.1:0,patience=2s", nil)
	if err != nil {
		t.Fatal(err)
	}
	i := newInvitation()
	o.tell = i
	r := play(t, o, agent.Briefing{Task: problem.Detection, Steps: 40}, shop)
	text := i.text.String()
	if r.err != nil || !strings.Contains(text, "the one in AIOPSLAB_MEMBER_TOKEN_DB") || !strings.Contains(text, "http://127.0.0.1:") ||
		strings.Contains(text+r.talk()+fmt.Sprint(r.group), "s3cret") {
		t.Errorf("%v: %s\n%s", r.err, text, r.talk())
	}
	for option, want := range map[string]string{
		"listen=0.0.0.0:80": "not this machine's own", "listen=:80": "not this machine's own", "listen=x": "no address to listen on",
		"member=db@mcp,member=db@mcp": "two maintainers",
	} {
		if _, err := o.read(option, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", option, err, want)
		}
	}
}
