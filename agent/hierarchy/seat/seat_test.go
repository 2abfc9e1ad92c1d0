package seat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var report = &aci.Action{Name: "report", Params: []aci.Param{{Name: "message", Type: "str", Required: true}}}

// withKey shows a key with every request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// seated is a seat, and a client in it.
func seated(t *testing.T) (*Hall, *Seat, func(tool string, args map[string]any) string) {
	t.Helper()
	hall, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	look := &aci.Action{Name: "look", Params: []aci.Param{{Name: "at", Type: "str", Default: "all"}}}
	s := hall.Seat(Config{Name: "geo", Key: "the-key", Actions: []*aci.Action{look, report}, Report: "report"})
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{
			Endpoint: s.URL, HTTPClient: &http.Client{Transport: withKey("the-key")}, MaxRetries: -1, DisableStandaloneSSE: true,
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if err := hall.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return hall, s, func(tool string, args map[string]any) string {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			return err.Error()
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
}

// A message is handed over once, its calls come one at a time with what came of them, and after the report the client is
// without work until the next.
func TestSeat(t *testing.T) {
	_, s, call := seated(t)
	want := func(got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("got %q, want %q", got, part)
		}
	}
	say := func(text, expect string) {
		t.Helper()
		got, err := s.Say(t.Context(), text)
		if err != nil {
			t.Error(err)
		}
		want(got, expect)
	}
	want(call("next_message", map[string]any{"wait": 1}), "There is no message yet")
	want(call("look", nil), "You have no message")
	done := make(chan struct{})
	go func() { // The group.
		defer close(done)
		say("TASK: look", `look(at="here")`)
		say("nothing there", `report(message="nothing")`)
		s.Leave()
		say("TASK: again", `report(message="nothing again")`)
		s.Leave()
	}()
	want(call("next_message", nil), "TASK: look")
	want(call("next_message", nil), "have not reported")
	want(call("look", map[string]any{"where": "here"}), "no argument where")
	want(call("look", map[string]any{"at": "here"}), "nothing there")
	want(call("report", map[string]any{"message": "nothing"}), "Reported")
	want(call("next_message", nil), "TASK: again")
	want(call("report", map[string]any{"message": "nothing again"}), "Reported")
	<-done
	want(call("report", map[string]any{"message": "once more"}), "You have no message")
}

// Who waits when the seat is emptied is told why, as is whoever calls later, and the group is told as well.
func TestClose(t *testing.T) {
	_, s, call := seated(t)
	lost := make(chan error, 1)
	go func() {
		_, err := s.Say(t.Context(), "TASK: look")
		lost <- err
	}()
	if got := call("next_message", nil); got != "TASK: look" {
		t.Errorf("got %q", got)
	}
	s.Close(errors.New("it was too slow"))
	if err := <-lost; err == nil || err.Error() != "it was too slow" {
		t.Errorf("got %v", err)
	}
	for _, tool := range []string{"next_message", "look"} {
		if got := call(tool, nil); !strings.Contains(got, "it was too slow. There is nothing more to do") {
			t.Errorf("%s: %q", tool, got)
		}
	}
	if _, err := s.Say(t.Context(), "TASK: look"); err == nil {
		t.Error("somebody is there")
	}
}

// A client that is away is waited for until the time is over, and what it calls then is refused.
func TestAway(t *testing.T) {
	_, s, call := seated(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("no answer in time"))
	defer cancel()
	if _, err := s.Say(ctx, "TASK: look"); err == nil || err.Error() != "no answer in time" {
		t.Errorf("got %v", err)
	}
	s.Leave()
	if got := call("look", nil); !strings.Contains(got, "You have no message") {
		t.Errorf("got %q", got)
	}
}

func TestCheckListen(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:80": true, "[::1]:80": true, "0.0.0.0:80": false, ":80": false, "10.1.2.3:80": false,
		"elsewhere:80": false, "127.0.0.1": false,
	} {
		if err := CheckListen(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
