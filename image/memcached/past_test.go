package memcached

import (
	"context"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestServerHasLived holds that a server that is told its past is as old as its container and has counted all the time.
func TestServerHasLived(t *testing.T) {
	env := kittest.New(t).Machine("cache", "10.0.0.1").Env("memcached")
	env.Started = time.Now().Add(-2 * time.Hour)
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	s := newServer(env, options{memory: 4 << 20, maxItem: 1 << 20, maxConns: 10, threads: 4})
	s.remember()
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c := &s.store.stats
	c.cmdGet, c.getMisses, c.cmdSet = 10, 10, 10 // It is cold.
	s.stats.bytesRead.Add(1000)
	for range 8 {
		s.conns[&conn{since: time.Now()}] = struct{}{}
		s.stats.total.Add(1)
	}
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	work := p.Work(env.Started, join)
	if n, want := s.store.stats.cmdGet, int64(10*work); n < want-1 || n > want+1 {
		t.Errorf("%d gets, want about %d", n, want)
	}
	if c.getHits+c.getMisses != c.cmdGet || c.getHits < c.cmdGet*9/10 || c.cmdSet != c.getMisses {
		t.Errorf("of %d gets %d hit and %d missed, and %d were set", c.cmdGet, c.getHits, c.getMisses, c.cmdSet)
	}
	if n, want := s.stats.bytesRead.Load(), int64(1000*work); n < want-1 || n > want+1 {
		t.Errorf("%d bytes were read, want about %d", n, want)
	}
	came := p.Comings(env.Hostname, 8, env.Started)
	if n := s.stats.total.Load(); n != int64(8+len(came)) || len(came) == 0 {
		t.Errorf("%d connections were made, want 8 and %d", n, len(came))
	}
	for c := range s.conns {
		if !c.since.Before(p.Loaded) || c.since.Before(env.Started) {
			t.Errorf("a connection was made at %v", c.since)
		}
	}
	if up := time.Since(s.started); up < 2*time.Hour {
		t.Errorf("it is up for %v", up)
	}
}
