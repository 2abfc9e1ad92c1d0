package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestServerHasLived holds that a server that is told its past is as old as its container, by what it has counted and
// by who has come to it since.
func TestServerHasLived(t *testing.T) {
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	started := time.Now().Add(-2 * time.Hour)
	l := startWith(t, initSQL, func(env *kit.Env) {
		env.Started = started
		env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	})
	first, second := l.connect(), l.connect()
	var before, after struct{ commits, rollbacks, returned, written int64 }
	stats := func(into *struct{ commits, rollbacks, returned, written int64 }) {
		t.Helper()
		err := first.QueryRow(t.Context(), "SELECT xact_commit, xact_rollback, tup_returned, tup_inserted FROM pg_stat_database "+
			"WHERE datname = 'otel'").Scan(&into.commits, &into.rollbacks, &into.returned, &into.written)
		if err != nil {
			t.Fatal(err)
		}
	}
	stats(&before)
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		for _, q := range []string{"SELECT * FROM catalog.products", "BEGIN", "ROLLBACK"} {
			if _, err := second.Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	stats(&after)
	work := p.Work(started, join)
	for _, c := range []struct {
		name      string
		got, each int64 // how many there are, and how many there were in the second of the usual load
	}{
		{"commits", after.commits, 20}, {"rollbacks", after.rollbacks, 20}, {"rows returned", after.returned, 40},
	} {
		if want := float64(c.each) * work; float64(c.got) < 0.98*want || float64(c.got) > 1.1*want {
			t.Errorf("%d %s in two hours, want about %.0f", c.got, c.name, want)
		}
	}
	if after.written != before.written {
		t.Errorf("%d rows were written, want %d: users wrote none", after.written, before.written)
	}

	rows, err := first.Query(t.Context(), "SELECT pid, backend_start FROM pg_stat_activity ORDER BY pid")
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for rows.Next() {
		var pid int32
		var since time.Time
		if err := rows.Scan(&pid, &since); err != nil {
			t.Fatal(err)
		}
		if since.Before(started) || since.After(p.Loaded) || since.Before(last) {
			t.Errorf("session %d came at %v, the one before it at %v", pid, since, last)
		}
		last = since
	}
	if last.Sub(started) > time.Minute {
		t.Errorf("a session of one of the first numbers came %v after the server was started", last.Sub(started))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	gone := len(p.Comings(l.server.Env().Hostname, 2, started))
	if got, want := l.connect().PgConn().PID(), second.PgConn().PID()+uint32(gone)+1; gone == 0 || got != want {
		t.Errorf("the next session is %d, want %d", got, want)
	}
}
