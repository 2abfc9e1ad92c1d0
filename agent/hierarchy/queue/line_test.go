package queue

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// serveAt starts a server with a port, as a user has one. Port 0 is any.
func serveAt(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	o.Host, o.NoLog, o.NoSigs, o.JetStream, o.StoreDir = "127.0.0.1", true, true, true, t.TempDir()
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(startTimeout) {
		t.Fatal("the server did not come up")
	}
	return s
}

// A server that asks who comes is told, and one that is told something else says no, without a word of the secret.
func TestLogin(t *testing.T) {
	byUser := serveAt(t, server.Options{Username: "lab", Password: "open-sesame"})
	byToken := serveAt(t, server.Options{Authorization: "a-long-token"})
	for _, tt := range []struct {
		name  string
		at    *server.Server
		login Login
		wrong string
	}{
		{"user", byUser, Login{User: "lab", Password: "open-sesame"}, ""},
		{"token", byToken, Login{Token: "a-long-token"}, ""},
		{"wrong password", byUser, Login{User: "lab", Password: "something-else"}, "Authorization"},
		{"wrong token", byToken, Login{Token: "something-else"}, "Authorization"},
		{"nobody", byUser, Login{}, "Authorization"},
	} {
		url := "nats://" + tt.at.Addr().String()
		q, err := Open(context.Background(), Config{URL: url, Login: tt.login})
		if err == nil {
			send(t, q, "geo", "1", "a")
			if d := next(t, inbox(t, q, "geo")); string(d.Body) != "a" {
				t.Errorf("%s: got %q", tt.name, d.Body)
			}
			if err := q.Close(); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if got := err == nil; got != (tt.wrong == "") || err != nil && (!strings.Contains(err.Error(), tt.wrong) ||
			strings.Contains(err.Error(), "something-else") || !strings.Contains(err.Error(), url)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is wrong with an address or a login is said, without a secret.
func TestCheckLogin(t *testing.T) {
	user := Login{User: "lab", Password: "open-sesame"}
	for _, tt := range []struct {
		at    string
		login Login
		want  string
	}{
		{"nats://queue:4222", Login{}, ""},
		{"tls://queue:4222", user, ""},
		{"nats://localhost:4222", user, ""},
		{"nats://127.0.0.1:4222", Login{Token: "open-sesame"}, ""},
		{"wss://queue/path", Login{Token: "open-sesame"}, ""},
		{"nats://queue:4222", user, "would go to queue:4222 unencrypted"},
		{"nats://lab:open-sesame@queue:4222", Login{}, "in the record"},
		{"nats://open-sesame@queue:4222", Login{}, "in the record"},
		{"nats://queue:4222?password=open-sesame", Login{}, "nothing behind"},
		{"nats://lab:open-sesame@queue:port", Login{}, "no address"},
		{"queue:4222", Login{}, "no address"},
		{"tls://queue:4222", Login{User: "lab"}, "goes with a password"},
		{"tls://queue:4222", Login{Password: "open-sesame"}, "goes with a password"},
		{"tls://queue:4222", Login{User: "lab", Password: "open-sesame", Token: "open-sesame"}, "one of them"},
	} {
		err := tt.login.Check(tt.at)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) ||
			strings.Contains(err.Error(), "open-sesame")) {
			t.Errorf("%s: %v, want %q", tt.at, err, tt.want)
		}
	}
}

// A connection that breaks and comes back is not noticed by who sends and reads.
func TestLineBreaks(t *testing.T) {
	s := serveAt(t, server.Options{})
	q := open(t, Config{URL: s.ClientURL()})
	in := inbox(t, q, "geo")
	got := make(chan string)
	var wg sync.WaitGroup
	wg.Go(func() {
		for last := ""; last != "message 3"; {
			d := next(t, in)
			if text := string(d.Body); text != last { // Its acknowledgement may have been lost.
				last = text
				got <- text
			}
			if err := d.Ack(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, id := range []string{"1", "2", "3"} {
		id64, err := q.conn.GetClientID()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DisconnectClientByID(id64); err != nil {
			t.Fatal(err)
		}
		send(t, q, "geo", id, "message "+id)
		if m := <-got; m != "message "+id {
			t.Errorf("got %q", m)
		}
	}
	wg.Wait()
}

// A server that does not come back, or comes back with nothing, is lost: whoever sends or reads is told so, soon.
func TestLost(t *testing.T) {
	for name, comesBack := range map[string]bool{"gone": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			s := serveAt(t, server.Options{})
			q := open(t, Config{URL: s.ClientURL(), Patience: 2 * time.Second})
			in := inbox(t, q, "geo")
			read := make(chan error, 1)
			go func() {
				_, err := in.Next(context.Background())
				read <- err
			}()
			port := s.Addr().(*net.TCPAddr).Port
			s.Shutdown()
			s.WaitForShutdown()
			if comesBack {
				serveAt(t, server.Options{Port: port})
			}
			for _, err := range []error{q.Send(context.Background(), "geo", "1", []byte("a")), <-read} {
				if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), s.ClientURL()) {
					t.Errorf("got %v", err)
				}
			}
			if _, err := q.Inbox(context.Background(), "pay"); !errors.Is(err, ErrLost) {
				t.Errorf("got %v", err)
			}
		})
	}
}
