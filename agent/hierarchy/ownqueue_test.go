package hierarchy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// ownServer is a NATS server as somebody has one, with a port and a password.
func ownServer(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		Username: "lab", Password: "open-sesame",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server did not come up")
	}
	return s
}

// over is a group whose messages go over a server.
func over(t *testing.T, s *server.Server, m mode) options {
	t.Helper()
	env := map[string]string{"AIOPSLAB_QUEUE_USER": "lab", "AIOPSLAB_QUEUE_PASSWORD": "open-sesame"}
	o := options{env: func(name string) string { return env[name] }}
	o, err := o.read(string(m)+",queue="+s.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A whole group works over a server of the user's own that is reached by its address, and leaves nothing there.
func TestOwnQueue(t *testing.T) {
	s := ownServer(t)
	went := int64(0)
	for _, m := range []mode{manager, peers} {
		w, task, _ := scenario(t, "scaled-to-zero")
		r := play(t, over(t, s, m), agent.Briefing{Task: task}, w.answer)
		if r.err != nil || len(r.answers) != 1 || !r.did("scale deployment/user-service") {
			t.Errorf("%s: %v: %v\n%s", m, r.err, r.answers, r.talk())
		}
		v, err := s.Varz(nil)
		if err != nil || v.InMsgs < went+int64(len(r.messages)) {
			t.Errorf("%s: %d messages, of which some did not go over the server: %v", m, len(r.messages), err)
		}
		went = v.InMsgs
		if v, err := s.Jsz(&server.JSzOptions{}); err != nil || v.Streams != 0 {
			t.Errorf("%s: left on the server: %+v, %v", m, v, err)
		}
	}
}

// A server that is lost in the middle of a run ends it, soon, and not as a failure of the agent.
func TestOwnQueueLost(t *testing.T) {
	s := ownServer(t)
	w, _, _ := scenario(t, "scaled-to-zero")
	o := over(t, s, manager)
	o.lostAfter = time.Second
	calls := 0
	r := play(t, o, agent.Briefing{Task: problem.Mitigation}, func(c *aci.Call) string {
		if calls++; calls == 4 {
			s.Shutdown()
			s.WaitForShutdown()
		}
		return w.answer(c)
	})
	if !errors.Is(r.err, agent.ErrUnavailable) || !strings.Contains(r.err.Error(), "the message queue is lost") ||
		strings.Contains(r.err.Error(), "open-sesame") {
		t.Errorf("%v: %v", r.err, r.answers)
	}
}
