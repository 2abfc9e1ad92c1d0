package vnet

import (
	"math"
	"net/netip"
	"sync"
	"time"
)

const (
	segmentSize = 1448 // bytes a TCP segment carries on an Ethernet link

	// The kernel's retransmission timers.
	minRTO = 200 * time.Millisecond
	maxRTO = 120 * time.Second
)

// Link describes what happens to traffic on its way from one host to another. The zero value is a
// perfect wire. TCP hides loss, corruption and duplication behind retransmissions, so there they
// show as latency; UDP shows them as they are.
type Link struct {
	Down      bool          // nothing passes
	Loss      float64       // probability that a segment is lost, 0 to 1
	Corrupt   float64       // probability that a segment arrives damaged, 0 to 1
	Duplicate float64       // probability that a segment arrives twice, 0 to 1
	Delay     time.Duration // added to every segment
	Jitter    time.Duration // Delay varies by up to this much either way, uniformly
	Bandwidth int64         // bytes a second shared by all traffic of a sending host; 0 is unlimited
}

// rule is a Link bound to the traffic it disturbs.
type rule struct {
	match func(src, dst netip.Addr) bool
	link  Link

	mu       sync.Mutex
	nextFree map[netip.Addr]time.Time // by sender: when its last byte will have left
}

// departure returns when size bytes sent at the given time have left src.
func (r *rule) departure(src netip.Addr, size int, sent time.Time) time.Time {
	if r.link.Bandwidth <= 0 {
		return sent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	start := sent
	if t := r.nextFree[src]; t.After(start) {
		start = t
	}
	end := start.Add(time.Duration(float64(size) / float64(r.link.Bandwidth) * float64(time.Second)))
	r.nextFree[src] = end
	return end
}

// Disturb applies link to the traffic for which match holds, in addition to all other
// disturbances, until remove is called. match is asked with addresses of hosts, after routing. It
// affects open connections too.
func (n *Network) Disturb(match func(src, dst netip.Addr) bool, link Link) (remove func()) {
	r := &rule{match: match, link: link, nextFree: map[netip.Addr]time.Time{}}
	n.mu.Lock()
	n.rules = append(n.rules, r)
	n.mu.Unlock()
	n.changed()
	return sync.OnceFunc(func() {
		n.mu.Lock()
		for i, x := range n.rules {
			if x == r {
				n.rules = append(n.rules[:i:i], n.rules[i+1:]...)
				break
			}
		}
		n.mu.Unlock()
		n.changed()
	})
}

// path is one direction between two hosts, with the rules that apply to it at the moment.
type path struct {
	net      *Network
	src, dst *Host

	mu         sync.Mutex
	generation uint64
	rules      []*rule
}

// disturbances returns the rules that apply now; none is the common case and costs one load.
func (p *path) disturbances() []*rule {
	gen := p.net.generation.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if gen != p.generation {
		p.generation, p.rules = gen, nil
		p.net.mu.RLock()
		for _, r := range p.net.rules {
			if r.match(p.src.addr, p.dst.addr) {
				p.rules = append(p.rules, r)
			}
		}
		p.net.mu.RUnlock()
	}
	return p.rules
}

// transit returns when size bytes sent at the given time arrive, if they are not lost.
func (p *path) transit(rules []*rule, d dice, size int, sent time.Time) time.Time {
	at := sent
	for _, r := range rules {
		at = r.departure(p.src.addr, size, at)
	}
	for _, r := range rules {
		at = at.Add(r.link.Delay)
		if j := r.link.Jitter; j > 0 {
			at = at.Add(time.Duration((2*d() - 1) * float64(j)))
		}
	}
	if at.Before(sent) {
		return sent
	}
	return at
}

// dropped decides whether size bytes of a TCP stream need a retransmission.
func (p *path) dropped(rules []*rule, d dice, size int) bool {
	segments := float64((size + segmentSize - 1) / segmentSize)
	for _, r := range rules {
		if r.link.Down {
			return true
		}
		bad := 1 - (1-r.link.Loss)*(1-r.link.Corrupt)
		if bad > 0 && d() < 1-math.Pow(1-bad, max(segments, 1)) {
			return true
		}
	}
	return false
}

// chance decides one event whose probability is the given field of any rule.
func (p *path) chance(rules []*rule, d dice, field func(Link) float64) bool {
	for _, r := range rules {
		if f := field(r.link); f > 0 && d() < f {
			return true
		}
	}
	return false
}

// rto is how long the kernel waits before the given retransmission, counted from 1.
func rto(try int) time.Duration {
	if try > 10 {
		return maxRTO
	}
	return min(minRTO<<(try-1), maxRTO)
}
