package past_test

import (
	"slices"
	"testing"
	"time"
)

// TestComings holds that a server has had as many connections in its time as it takes to have so many now, that those it has
// were made since its start, and that a young server has had no others.
func TestComings(t *testing.T) {
	p := newPast(7)
	started := join.Add(-10 * 24 * time.Hour)
	list := p.Comings("db", 8, started)
	if n := len(list); n < 400 || n > 560 { // Eight, six times a day.
		t.Errorf("%d connections in ten days", n)
	}
	if !slices.Equal(list, newPast(7).Comings("db", 8, started)) || slices.Equal(list, p.Comings("cache", 8, started)) {
		t.Error("a server does not have a past of its own")
	}
	for i, at := range list {
		if at.Before(started) || at.After(p.Loaded) || i > 0 && at.After(list[i-1]) {
			t.Fatalf("connection %d was made at %v", i, at)
		}
	}
	for _, at := range p.Came("db", 8, join.Add(-time.Minute)) {
		if at.Before(join.Add(-time.Minute)) || at.After(p.Loaded) {
			t.Errorf("a connection was made at %v", at)
		}
	}
	if n := len(p.Comings("db", 8, join)); n > 0 {
		t.Errorf("%d connections to a server that was just started", n)
	}
}
