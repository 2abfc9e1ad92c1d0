package pd

import (
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

// three is a PD server that knows three stores, of which the first leads, at a time of its own.
func three(t *testing.T) (s *state, pass func(time.Duration), report func(id, leader uint64) kv.Orders) {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	s = newState(kv.Member{Name: "pd-0"}, nil, func() time.Time { return now })
	peers := []kv.Peer{{ID: 1, Address: "a"}, {ID: 2, Address: "b"}, {ID: 3, Address: "c"}}
	report = func(id, leader uint64) kv.Orders {
		r := kv.StoreReport{ID: id, Address: peers[id-1].Address, Member: true, Leader: id == leader, Applied: 10 + id}
		if r.Leader {
			r.Peers = peers
		}
		return s.report(r)
	}
	for _, id := range []uint64{2, 3, 1} {
		report(id, 1)
	}
	return s, func(d time.Duration) { now = now.Add(d) }, report
}

// A store that nothing is heard of is disconnected at first, then down, and up again when it is back.
func TestStoreDown(t *testing.T) {
	s, pass, report := three(t)
	s.down = time.Minute
	want := func(state string) {
		t.Helper()
		if got := s.listed()[1].Store.StateName; got != state {
			t.Errorf("it is %s, want %s", got, state)
		}
	}
	want(storeUp)
	pass(connectedFor)
	want(storeDisconnected)
	pass(time.Minute - connectedFor - 1)
	want(storeDisconnected)
	pass(1)
	want(storeDown)
	report(2, 1)
	want(storeUp)
}

// A cluster is as old as the oldest of its stores was, whoever hears of that, and does not become younger again.
func TestBootstrapped(t *testing.T) {
	s, _, report := three(t)
	want := func(at int64) {
		t.Helper()
		if got := s.tell().Bootstrapped; got != at {
			t.Errorf("bootstrapped at %d, want %d", got, at)
		}
	}
	want(1_800_000_000)
	old := kv.StoreReport{ID: 2, Address: "b", Member: true, Started: 1_798_000_000}
	s.report(old)
	want(1_798_000_000)
	report(2, 1)
	old.Started = 1_799_000_000
	s.report(old)
	want(1_798_000_000)
	s.report(kv.StoreReport{ID: 9, Address: "z", Started: 1}) // It has nothing of the cluster yet.
	s.learn("pd-1", shared{Bootstrapped: 1_797_000_000})
	want(1_797_000_000)
	s.learn("pd-1", shared{})
	want(1_797_000_000)
}

// A store that is not to lead is told who is to do so: the one of the others that knows most.
func TestEvict(t *testing.T) {
	s, pass, report := three(t)
	if got := report(1, 1).Lead; got != 0 {
		t.Errorf("%d is to lead, though nobody has asked", got)
	}
	if s.evict(7, true) || s.evict(1, false) {
		t.Error("what there is none of was found")
	}
	for range 2 {
		if !s.evict(1, true) {
			t.Error("the store was not found")
		}
	}
	if got := report(1, 1).Lead; got != 3 {
		t.Errorf("%d is to lead, want 3", got)
	}
	if got := report(2, 1).Lead; got != 0 {
		t.Errorf("who does not lead is told that %d is to", got)
	}
	s.leave(3)
	if got := report(1, 1).Lead; got != 2 {
		t.Errorf("%d is to lead, want 2: 3 is to go", got)
	}
	pass(connectedFor)
	if got := report(1, 1).Lead; got != 0 {
		t.Errorf("%d is to lead, and nobody is up", got)
	}
	// The others hear of it, also of its end, in whatever order.
	other := newState(kv.Member{Name: "pd-1"}, nil, s.now)
	before := s.tell()
	pass(time.Second)
	if !s.evict(1, false) || len(s.evictions()) != 0 {
		t.Error("it does not end")
	}
	other.learn("pd-0", before)
	if got := other.evictions(); len(got) != 1 || got[0] != 1 {
		t.Errorf("pd-1 knows %v", got)
	}
	other.learn("pd-0", s.tell())
	other.learn("pd-0", before)
	if got := other.evictions(); len(got) != 0 {
		t.Errorf("pd-1 knows %v", got)
	}
}

// What others tell does not make a server remember without end.
func TestEvictionsBounded(t *testing.T) {
	s, _, _ := three(t)
	flood := shared{Evicted: map[uint64]eviction{}}
	for id := range uint64(3 * maxKnown) {
		flood.Evicted[id] = eviction{true, 1}
	}
	s.learn("pd-9", flood)
	if n := len(s.evictions()); n > maxKnown {
		t.Errorf("it remembers %d", n)
	}
}

func TestDownTime(t *testing.T) {
	for config, want := range map[string]time.Duration{
		"": maxStoreDownTime, "[log]\nlevel = \"info\"\n": maxStoreDownTime,
		"[log]\nmax-store-down-time = \"1m\"":                                 maxStoreDownTime,
		"[schedule]\n# a word\nmax-store-down-time = \"90s\" # soon\n[log]\n": 90 * time.Second,
	} {
		if got, err := downTime(config); err != nil || got != want {
			t.Errorf("%q: %v, %v", config, got, err)
		}
	}
	for _, config := range []string{
		"[schedule]\nmax-store-down-time = 5", "[schedule]\nmax-store-down-time = \"-5s\"", "[schedule]\nmax-store-down-time",
	} {
		if got, err := downTime(config); err == nil {
			t.Errorf("%q passes for %v", config, got)
		}
	}
}
