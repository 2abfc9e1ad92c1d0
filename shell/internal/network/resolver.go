package network

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/kit"
)

// resolverConfig is what /etc/resolv.conf says.
type resolverConfig struct {
	servers  []string
	search   []string
	ndots    int
	timeout  time.Duration
	attempts int
}

func readResolverConfig(env *kit.Env) resolverConfig {
	cfg := resolverConfig{ndots: 1, timeout: 5 * time.Second, attempts: 2}
	data, _ := env.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			cfg.servers = append(cfg.servers, f[1])
		case "search", "domain":
			cfg.search = f[1:]
		case "options":
			for _, o := range f[1:] {
				name, value, _ := strings.Cut(o, ":")
				n, err := strconv.Atoi(value)
				if err != nil || n < 0 {
					continue
				}
				switch name {
				case "ndots":
					cfg.ndots = n
				case "timeout":
					cfg.timeout = time.Duration(max(n, 1)) * time.Second
				case "attempts":
					cfg.attempts = max(n, 1)
				}
			}
		}
	}
	if len(cfg.servers) == 0 {
		cfg.servers = []string{"127.0.0.1"}
	}
	return cfg
}

// candidates are the names that a name may stand for, in the order they are tried.
func (cfg *resolverConfig) candidates(name string) []string {
	if strings.HasSuffix(name, ".") {
		return []string{name}
	}
	var list []string
	for _, s := range cfg.search {
		list = append(list, name+"."+strings.TrimSuffix(s, ".")+".")
	}
	if strings.Count(name, ".") >= cfg.ndots {
		return append([]string{name + "."}, list...)
	}
	return append(list, name+".")
}

// dnsServer is whom a question goes to.
type dnsServer struct {
	name string // as it was given
	addr string // host:port
}

// server completes the address of a name server. Its name is resolved by the network.
func server(ctx context.Context, env *kit.Env, name string, port string) (dnsServer, error) {
	if net.ParseIP(name) == nil {
		addrs, err := env.Net.LookupHost(ctx, name)
		if err != nil || len(addrs) == 0 {
			return dnsServer{}, fmt.Errorf("bad address '%s'", name)
		}
		return dnsServer{name, net.JoinHostPort(addrs[0], port)}, nil
	}
	return dnsServer{name, net.JoinHostPort(name, port)}, nil
}

// question is what a tool wants to know.
type question struct {
	name    string
	kind    uint16
	tcp     bool
	norec   bool
	edns    bool
	timeout time.Duration
	tries   int
}

var errNoAnswer = errors.New("timed out")

// ask sends a question and waits for the answer, as often as it is worth. retry is told about every
// attempt that failed.
func ask(
	ctx context.Context, env *kit.Env, s dnsServer, q question, retry func(err error),
) (*dns.Msg, time.Duration, error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(q.name), q.kind)
	m.Id = uint16(rand.Uint32())
	m.RecursionDesired = !q.norec
	if q.edns {
		m.SetEdns0(1232, false)
	}
	network := "udp"
	if q.tcp {
		network = "tcp"
	}
	err := errNoAnswer
	for range max(q.tries, 1) {
		start := time.Now()
		var reply *dns.Msg
		reply, err = exchange(ctx, env, network, s.addr, m, q.timeout)
		if err == nil && reply.Truncated && network == "udp" {
			reply, err = exchange(ctx, env, "tcp", s.addr, m, q.timeout)
		}
		if err == nil {
			return reply, time.Since(start), nil
		}
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if retry != nil {
			retry(err)
		}
	}
	return nil, 0, err
}

func exchange(
	ctx context.Context, env *kit.Env, network, addr string, m *dns.Msg, timeout time.Duration,
) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := env.Net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	co := &dns.Conn{Conn: conn, UDPSize: 4096}
	if err := co.WriteMsg(m); err != nil {
		return nil, err
	}
	for {
		reply, err := co.ReadMsg()
		if err != nil {
			if ctx.Err() != nil {
				return nil, errNoAnswer
			}
			return nil, err
		}
		if reply.Id == m.Id { // Another one is late.
			return reply, nil
		}
	}
}

// reverseName is the name under which an address is looked up.
func reverseName(addr string) (string, bool) {
	name, err := dns.ReverseAddr(addr)
	return name, err == nil
}

// recordData is what a record says, without its name, type and time to live.
func recordData(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }
