package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestServerHasLived holds that a server that is told its past is as old as its container, has counted all the time, and
// has saved as often as it would have.
func TestServerHasLived(t *testing.T) {
	env := kittest.New(t).Machine("cache", "10.0.0.1").Env("redis-server")
	env.Started = time.Now().Add(-2 * time.Hour)
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	cfg, err := loadConfig(env)
	if err != nil {
		t.Fatal(err)
	}
	cfg.values["dir"] = "/"
	s, err := newInstance(env, cfg, redisBrand)
	if err != nil {
		t.Fatal(err)
	}
	defer s.data.Close()
	s.remember()
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.stats.processed, s.dirty = 20, 10
	for range 8 {
		s.nextID++
		s.stats.connections++
		s.clients[&client{id: s.nextID, since: time.Now()}] = struct{}{}
	}
	defer clear(s.clients)
	s.stats.commands["set"] = &commandStats{calls: 10, took: time.Millisecond}
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	var lines []string
	p.Log = func(at time.Time, line string) bool {
		if !strings.Contains(line, at.UTC().Format("02 Jan 2006 15:04:05.000")) {
			t.Errorf("a line of %v is %s", at, line)
		}
		lines = append(lines, line)
		return true
	}
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n, want := s.stats.processed, int64(20*p.Work(env.Started, join)); n < want-1 || n > want+1 {
		t.Errorf("%d commands were processed, want about %d", n, want)
	}
	came := int64(len(p.Comings(env.Hostname, 8, env.Started)))
	if came == 0 || s.stats.connections != 8+came || s.nextID != 8+came {
		t.Errorf("%d connections were made, the next client is %d, want 8 and %d", s.stats.connections, s.nextID, came)
	}
	for c := range s.clients {
		if !c.since.Before(p.Loaded) || c.since.Before(env.Started) {
			t.Errorf("a client came at %v", c.since)
		}
	}
	if n := s.stats.commands["set"].calls; n < 2*60*60 {
		t.Errorf("set was called %d times in two hours", n)
	}
	// Ten changes a second reach 100 in 300 seconds first.
	if n := len(lines) / 4; n < 20 || n > 24 || !strings.Contains(lines[3], "100 changes in 300 seconds. Saving...") {
		t.Errorf("%d saves in two hours: %q", n, lines)
	}
	if ago := join.Sub(s.lastSave); ago < 0 || ago > 302*time.Second || s.saves < 20 {
		t.Errorf("the last of %d saves was %v ago", s.saves, ago)
	}
	if fi, err := env.FS.Stat("/dump.rdb"); err != nil || !fi.ModTime().Equal(s.lastSave) {
		t.Errorf("the file is of %v, want %v: %v", fi.ModTime(), s.lastSave, err)
	}
	info := map[string]string{}
	s.infoServer(func(name string, v any) { info[name] = fmt.Sprint(v) })
	if info["uptime_in_seconds"] < "7200" || len(info["uptime_in_seconds"]) != 4 {
		t.Errorf("it is up for %s s", info["uptime_in_seconds"])
	}
}
