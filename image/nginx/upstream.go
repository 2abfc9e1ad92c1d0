package nginx

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// upstream is a group of servers that requests are passed to, in turn and by weight.
type upstream struct {
	name string

	mu    sync.Mutex
	peers []*peer
}

// peer is one address of an upstream. What changes is protected by the upstream's mutex.
type peer struct {
	addr        string
	weight      int
	backup      bool
	down        bool
	maxFails    int
	failTimeout time.Duration

	current int // of smooth weighted round robin
	fails   int
	failed  time.Time // the last time
}

func applyUpstream(b *builder, _ *frame, d *directive) error {
	u := &upstream{name: d.args[0]}
	if b.cfg.upstreams[u.name] != nil {
		return d.errorf("duplicate upstream %q", u.name)
	}
	b.cfg.upstreams[u.name] = u
	for _, s := range d.block {
		switch s.name {
		case "server":
			if len(s.args) == 0 {
				return s.errorf(`invalid number of arguments in "server" directive`)
			}
			if err := b.addPeers(u, s); err != nil {
				return err
			}
		case "keepalive", "keepalive_timeout", "keepalive_requests", "zone", "least_conn", "random":
			// Which server gets a request is up to the group as long as each gets its share.
		default:
			return s.errorf("unknown directive %q", s.name)
		}
	}
	if len(u.peers) == 0 {
		return d.errorf("no servers are inside upstream")
	}
	return nil
}

// addPeers adds the addresses a server's name has. They are looked up once, when the configuration
// is read: who moves later is not found.
func (b *builder) addPeers(u *upstream, d *directive) error {
	p := peer{weight: 1, maxFails: 1, failTimeout: 10 * time.Second}
	for _, o := range d.args[1:] {
		key, value, _ := strings.Cut(o, "=")
		n, err := strconv.Atoi(value)
		switch {
		case key == "weight" && err == nil && n > 0:
			p.weight = n
		case key == "max_fails" && err == nil:
			p.maxFails = n
		case key == "fail_timeout":
			t, ok := parseTime(value)
			if !ok {
				return d.errorf("invalid parameter %q", o)
			}
			p.failTimeout = t
		case o == "backup":
			p.backup = true
		case o == "down":
			p.down = true
		case key == "max_conns" && err == nil, o == "resolve":
		default:
			return d.errorf("invalid parameter %q", o)
		}
	}
	addrs, err := b.lookup(d, d.args[0], "80")
	if err != nil {
		return err
	}
	for _, a := range addrs {
		one := p
		one.addr = a
		u.peers = append(u.peers, &one)
	}
	return nil
}

// lookup returns the addresses of host[:port].
func (b *builder) lookup(d *directive, hostPort, defaultPort string) ([]string, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = strings.Trim(hostPort, "[]"), defaultPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, d.errorf("invalid port in upstream %q", hostPort)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{net.JoinHostPort(host, port)}, nil
	}
	found, err := b.env.Net.LookupHost(b.ctx, host)
	if err != nil {
		return nil, d.errorf("host not found in upstream %q", host)
	}
	var addrs []string
	for _, a := range found {
		addrs = append(addrs, net.JoinHostPort(a, port))
	}
	return addrs, nil
}

// pick returns the peer whose turn it is, or nil if none is left. Those in tried have had theirs.
func (u *upstream) pick(tried []*peer, now time.Time) *peer {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, backup := range []bool{false, true} {
		var best *peer
		total := 0
		for _, p := range u.peers {
			if p.backup != backup || p.down || slices.Contains(tried, p) {
				continue
			}
			// Whoever failed too often gets a pause, unless there is nobody else at all.
			if len(u.peers) > 1 && p.maxFails > 0 && p.fails >= p.maxFails && now.Sub(p.failed) < p.failTimeout {
				continue
			}
			p.current += p.weight
			total += p.weight
			if best == nil || p.current > best.current {
				best = p
			}
		}
		if best != nil {
			best.current -= total
			return best
		}
	}
	return nil
}

// report notes whether a peer answered.
func (u *upstream) report(p *peer, ok bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case ok:
		p.fails = 0
	case now.Sub(p.failed) >= p.failTimeout:
		p.fails, p.failed = 1, now
	default:
		p.fails++
		p.failed = now
	}
}

// forget makes all peers eligible again, as the original does once none is left.
func (u *upstream) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.peers {
		p.fails = 0
	}
}
