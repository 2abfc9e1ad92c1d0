package server

import (
	"context"
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
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	srv.counts.insert.Add(10)
	join := srv.began.Add(time.Minute)
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	var lines []string
	p.Log = func(at time.Time, line string) bool {
		if !strings.Contains(line, at.UTC().Format("2006-01-02T15:04:05.000")) {
			t.Errorf("a line of %v is %s", at, line)
		}
		lines = append(lines, line)
		return true
	}
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n, want := srv.counts.insert.Load(), int64(10*p.Work(env.Started, join)); n < want-1 || n > want+1 {
		t.Errorf("%d documents were inserted, want about %d", n, want)
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
