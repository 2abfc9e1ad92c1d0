package agnhost

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

// The guestbook of the conformance suite: a front end, a primary and a replica.
func TestGuestbook(t *testing.T) {
	w := kittest.New(t)
	primary, replica, frontend := w.Machine("agnhost-primary", "10.244.0.2"), w.Machine("agnhost-replica", "10.244.0.3"), w.Machine("frontend", "10.244.0.4")
	start(primary, "guestbook", "--http-port", "6379")
	primary.WaitListen(":6379")
	if _, body := get(t, primary, "http://localhost:6379/set?key=old&value=1"); body != `{"message":"Updated"}` {
		t.Fatal(body)
	}
	r := start(replica, "guestbook", "--replicaof", "agnhost-primary", "--http-port", "6379")
	r.Await("joined agnhost-primary")
	start(frontend, "guestbook", "--backend-port", "6379")
	frontend.WaitListen(":80")
	tests := []struct {
		query, want string
		code        int
	}{
		{"cmd=get&key=messages&value=", `{"data":""}`, 200},
		{"cmd=set&key=messages&value=TestEntry%26more", `{"message":"Updated"}`, 200},
		{"cmd=get&key=messages&value=", `{"data":"TestEntry\u0026more"}`, 200},
		{"cmd=get", `{"data":{"messages":"TestEntry\u0026more","old":"1"}}`, 200},
		{"cmd=set", "agnhost-primary: an entry needs a key=\n\n", 400},
		{"cmd=drop", "cmd=drop: a guestbook can get and set\n", 400},
	}
	for _, tt := range tests {
		if code, body := get(t, frontend, "http://localhost/guestbook?"+tt.query); code != tt.code || body != tt.want {
			t.Errorf("%s: %d %s", tt.query, code, body)
		}
	}
}

func TestGuestbookReplicaGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		began := time.Now()
		r := start(m, "guestbook", "--replicaof", "nobody")
		time.Sleep(14 * time.Second)
		if code := r.Wait(); code != 1 {
			t.Errorf("exit %d", code)
		}
		r.Await("cannot join nobody: ")
		if took := time.Since(began); took < joinTimeout {
			t.Errorf("it gave up after %v", took)
		}
	})
}
