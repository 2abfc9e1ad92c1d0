package guard

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/guard/undo"
)

// keeper is a cloud with containers that have a text each. What is kept of one is its text.
type keeper struct {
	mu        sync.Mutex
	texts     map[string]string // by pod
	size      int64
	err       error // of keeping
	lost      error // of putting back
	elsewhere []string
	restarts  int
	asked     []cloud.Command
}

func (k *keeper) Keep(_ context.Context, c cloud.Command) (cloud.Kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, c)
	if k.err != nil {
		return nil, k.err
	}
	return &keptText{k, c.Pod, k.texts[c.Pod]}, nil
}

func (k *keeper) write(pod, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.texts[pod] = text
}

func (k *keeper) read(pod string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.texts[pod]
}

type keptText struct {
	k         *keeper
	pod, text string
}

func (t *keptText) Name() string        { return "shop/" + t.pod + "/main" }
func (t *keptText) ID() string          { return "uid of " + t.pod }
func (t *keptText) Size() int64         { return t.k.size }
func (t *keptText) Elsewhere() []string { return t.k.elsewhere }

func (t *keptText) PutBack(context.Context) (string, error) {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	if t.k.lost != nil {
		return "", t.k.lost
	}
	t.k.texts[t.pod] = t.text
	t.k.restarts++
	return "its text is as it was", nil
}

// newKeptShop is a guard that can keep containers, before an API server that runs commands in them until their clients
// go.
func newKeptShop(t *testing.T) (*setup, *keeper) {
	t.Helper()
	s := &setup{fake: newFake(t)}
	s.fake.upgrades = true
	k := &keeper{texts: map[string]string{"web": "a", "store": "x"}}
	s.startWith(t, Options{Upstream: &rest.Config{Host: s.URL, BearerToken: "lab"}, Keeper: k})
	s.guard.settle = 0
	return s, k
}

// exec begins a command in a container and returns what ends it. The answer is the status line's.
func (s *setup) exec(t *testing.T, pod, command string) (status int, body string, hangUp func()) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.guard.Address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s/%s/exec?command=%s&container=main HTTP/1.1\r\nHost: guard\r\nAuthorization: Bearer %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n", pods, pod, command, s.guard.token)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.StatusCode, "", func() { conn.Close() }
	}
	b := make([]byte, 4096)
	n, _ := resp.Body.Read(b)
	conn.Close()
	return resp.StatusCode, string(b[:n]), func() {}
}

// change is a command that was run in a container, has changed its text, and is over.
func (s *setup) change(t *testing.T, k *keeper, pod, text string) {
	t.Helper()
	code, body, hangUp := s.exec(t, pod, "rm")
	if code != http.StatusSwitchingProtocols {
		t.Fatalf("%d %s", code, body)
	}
	k.write(pod, text)
	hangUp()
	s.quiet(t)
}

// quiet waits until no command runs.
func (s *setup) quiet(t *testing.T) {
	t.Helper()
	for _, c := range s.guard.history.running("") {
		<-c.over
	}
}

func TestCommandsAreTakenBack(t *testing.T) {
	s, k := newKeptShop(t)
	s.must(t, "begin")
	s.change(t, k, "web", "b")
	s.change(t, k, "store", "y")
	s.change(t, k, "web", "c")
	s.change(t, k, "web", "d")
	s.must(t, "undo", "connect pods/exec web", "its text is as it was")
	if got := k.read("web"); got != "c" || k.read("store") != "y" {
		t.Errorf("after the undo: %q, %q", got, k.read("store"))
	}
	s.must(t, "history", "with 4 of 20 writes", "the container is kept", "taken back")
	s.must(t, "abort", "the container is put back with 1", "3 writes were taken back. All that they changed")
	if k.read("web") != "a" || k.read("store") != "x" {
		t.Errorf("after the abort: %q, %q", k.read("web"), k.read("store"))
	}
	if k.restarts != 3 { // Of the undo, and one for each container of the abort.
		t.Errorf("%d containers were started again", k.restarts)
	}
	var got []string
	for _, e := range s.journal() {
		got = append(got, fmt.Sprintf("%s %s %s %d %d %q", e.Verb, e.Name, e.Kept, e.Transaction, e.Undoes, Irreversible(e)))
	}
	want := []string{
		`connect web shop/web/main 1 0 ""`, `connect store shop/store/main 1 0 ""`, `connect web shop/web/main 1 0 ""`,
		`connect web shop/web/main 1 0 ""`, `restore web shop/web/main 0 4 ""`, `restore store shop/store/main 0 2 ""`,
		`restore web shop/web/main 0 1 ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := k.asked[0]; c.Namespace != "shop" || c.Pod != "web" || c.Container != "main" || !slices.Equal(c.Args, []string{"rm"}) {
		t.Errorf("%+v", c)
	}
}

// What is kept is for the transaction: when it is over, nobody can take away what others wrote since.
func TestUndoOfCommandAfterCommit(t *testing.T) {
	s, k := newKeptShop(t)
	s.must(t, "begin")
	s.change(t, k, "web", "b")
	s.must(t, "commit", "is committed, with 1 writes")
	s.must(t, "undo", "not restored: its transaction is over")
	if k.read("web") != "b" || s.guard.history.keptBytes() != 0 {
		t.Errorf("the container has %q, %d bytes are kept", k.read("web"), s.guard.history.keptBytes())
	}
	// Without a transaction nothing is kept.
	s.change(t, k, "web", "c")
	s.must(t, "undo", "not restored: what a command does in a container")
}

func TestCommandsThatCannotBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		set func(*setup, *keeper)
		why string
	}{
		"the cloud refuses":       {func(_ *setup, k *keeper) { k.err = errors.New("it is too\nlarge") }, "cannot be taken back: it is too large"},
		"too much together":       {func(_ *setup, k *keeper) { k.size = maxKept + 1 }, "would be kept for the transaction"},
		"the cloud keeps nothing": {func(s *setup, _ *keeper) { s.guard.opts.Keeper = nil }, "this one may do more than read"},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := newKeptShop(t)
			c.set(s, k)
			s.must(t, "begin")
			code, body, _ := s.exec(t, "web", "rm")
			if code != 403 || !strings.Contains(body, c.why) || !strings.Contains(body, "commit or abort the transaction first") {
				t.Errorf("%d %s", code, body)
			}
			s.must(t, "history", "with 0 of 20 writes")
			s.must(t, "abort", "nothing to take back")
			s.do(t, "GET", pods+"/web", "") // Others can go on.
		})
	}
}

// A policy that allows what cannot be taken back has it kept where it can be, and allowed where not.
func TestKeptWherePolicyAllows(t *testing.T) {
	s, k := newKeptShop(t)
	p, err := policy.Parse("p.yaml", []byte("name: bold\notherwise: allow\nirreversible_in_transactions: allow\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.guard.opts.Policy = p
	s.must(t, "begin")
	s.change(t, k, "web", "b")
	k.err = errors.New("it is too large")
	s.change(t, k, "store", "y")
	s.must(t, "abort", "its text is as it was", "not restored: what a command does in a container")
	if k.read("web") != "a" || k.read("store") != "y" {
		t.Errorf("%q, %q", k.read("web"), k.read("store"))
	}
}

func TestCommandsFillTheWindow(t *testing.T) {
	s, k := newKeptShop(t)
	s.must(t, "begin")
	for range Window {
		s.change(t, k, "web", "b")
	}
	if code, body, _ := s.exec(t, "web", "rm"); code != 403 || !strings.Contains(body, "is full") {
		t.Errorf("%d %s", code, body)
	}
	if len(k.asked) != Window {
		t.Errorf("%d containers were kept", len(k.asked))
	}
	s.must(t, "abort")
	if k.restarts != 1 {
		t.Errorf("%d restarts", k.restarts)
	}
}

// A command that goes on is no part of what is compared at a commit, and could undo an abort.
func TestEndWithCommandThatRuns(t *testing.T) {
	s, k := newKeptShop(t)
	s.must(t, "begin")
	code, body, hangUp := s.exec(t, "web", "rm")
	if code != http.StatusSwitchingProtocols {
		t.Fatalf("%d %s", code, body)
	}
	defer hangUp()
	k.write("web", "b")
	s.refused(t, "commit", "1 commands in containers still run")
	s.must(t, "abort", "its text is as it was")
	if n := len(s.guard.history.running("")); n != 0 || s.guard.history.streaming() != 0 {
		t.Errorf("%d commands run", n)
	}
	s.must(t, "begin")
}

// An agent that leaves a transaction open has its commands taken back.
func TestLeaveTakesCommandsBack(t *testing.T) {
	s, k := newKeptShop(t)
	s.must(t, "begin")
	s.change(t, k, "web", "b")
	if err := s.guard.Shut(); err != nil {
		t.Fatal(err)
	}
	left, err := s.guard.Leave(t.Context())
	if err != nil || !left.Left || k.read("web") != "a" {
		t.Errorf("%+v %v: %q", left, err, k.read("web"))
	}
}

func TestWhatIsLeftOfCommands(t *testing.T) {
	t.Run("what it has sent elsewhere", func(t *testing.T) {
		s, k := newKeptShop(t)
		k.elsewhere = []string{"store:6379"}
		s.must(t, "begin")
		s.change(t, k, "web", "b")
		s.must(t, "abort", "its text is as it was", "not restored: what the command has sent to store:6379")
	})
	t.Run("the pod is gone", func(t *testing.T) {
		s, k := newKeptShop(t)
		k.lost = errors.New("its node was started anew")
		s.must(t, "begin")
		s.change(t, k, "web", "b")
		s.must(t, "abort", "not restored: container shop/web/main: its node was started anew")
		if e := s.journal()[1]; e.Verb != "restore" || e.Status != 500 || e.Error == "" {
			t.Errorf("%+v", e)
		}
	})
	// A fault that was injected after the container was kept is not cured by taking the command back.
	t.Run("a fault has come", func(t *testing.T) {
		s, k := newKeptShop(t)
		s.must(t, "begin")
		s.change(t, k, "web", "b")
		k.write("web", "faulty")
		s.guard.Unkeep()
		var undone []undo.Outcome
		s.guard.opts.Transaction = func(e Transaction) { undone = e.Undone }
		s.must(t, "abort", "not restored: somebody else has changed")
		if len(undone) != 1 || !undone[0].Excused {
			t.Errorf("the fault is held against who wrote: %+v", undone)
		}
		if k.read("web") != "faulty" {
			t.Errorf("the fault is gone: %q", k.read("web"))
		}
	})
}

// upgrade plays an API server that runs a command until the client goes.
func upgrade(w http.ResponseWriter) {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	_ = rw.Flush()
	_, _ = conn.Read(make([]byte, 1))
}
