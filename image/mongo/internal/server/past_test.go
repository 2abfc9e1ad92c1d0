package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestServerHasLived holds that a server that is told its past is as old as its container, has counted all the time, and
// logged its checkpoints.
func TestServerHasLived(t *testing.T) {
	env := kittest.New(t).Machine("db", "10.0.0.1").Env("mongod")
	env.Started = time.Now().Add(-2 * time.Hour)
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	log := mlog.New(&strings.Builder{})
	srv := New(Config{Env: env, Log: log})
	log.StartupWarning(mlog.Control, 22120, "Access control is not enabled")
	srv.counts.insert.Add(1000) // when it was filled
	srv.counts.query.Add(50)
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	srv.counts.insert.Add(10)
	srv.counts.query.Add(10)
	for range 8 {
		client, nc := net.Pipe()
		defer client.Close()
		c := &conn{srv: srv, raw: addressed{nc}, id: srv.nextConn.Add(1)}
		srv.conns[c] = struct{}{}
	}
	join := srv.began.Add(time.Minute)
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	var lines, visits []string
	var last time.Time
	p.Log = func(at time.Time, line string) bool {
		if !last.IsZero() && at.After(last.Add(10*time.Millisecond)) {
			t.Errorf("a line of %v comes after one of %v", at, last)
		}
		last = at
		if strings.Contains(line, `"c":"NETWORK"`) {
			visits = append(visits, line)
			return true
		}
		if !strings.Contains(line, at.UTC().Format("2006-01-02T15:04:05.000")) {
			t.Errorf("a line of %v is %s", at, line)
		}
		lines = append(lines, line)
		return true
	}
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n, want := srv.counts.query.Load(), int64(10*p.Work(env.Started, join)); n < want-1 || n > want+1 {
		t.Errorf("%d queries, want about %d", n, want)
	}
	if n := srv.counts.insert.Load(); n != 1010 {
		t.Errorf("%d documents were inserted, and 1010 are there", n)
	}
	came := p.Comings(env.Hostname, 8, env.Started)
	if n := srv.nextConn.Load(); n != int64(8+len(came)) || len(came) == 0 {
		t.Errorf("%d connections were made, want 8 and %d", n, len(came))
	}
	if text := strings.Join(visits, "\n"); strings.Count(text, "Connection accepted") != len(came) ||
		!strings.Contains(visits[0], fmt.Sprintf(`"connectionId":%d,`, 8+len(came))) ||
		!strings.Contains(visits[0], `"remote":"10.244.1.9:`) {
		t.Errorf("%d connections were made, and logged as %s", len(came), text)
	}
	if len(lines) < 118 || len(lines) > 120 || !strings.Contains(lines[0], "WT_SESSION.checkpoint") {
		t.Errorf("%d checkpoints in two hours: %.1s", len(lines), lines)
	}
	if w := log.StartupWarnings(); len(w) != 1 || !strings.Contains(w[0], env.Started.UTC().Format("2006-01-02T15:04")) {
		t.Errorf("the warnings of the start are %s", w)
	}
	if up := time.Since(srv.started); up < 2*time.Hour {
		t.Errorf("it is up for %v", up)
	}
}

// addressed is a connection from a pod.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 244, 1, 9), Port: 40000} }
