package consul

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	// Version is the release of Consul that this behaves like.
	Version     = "1.15.4"
	datacenter  = "dc1"
	requestCost = 50 * time.Microsecond
	drain       = time.Second
)

// agent is one Consul server in development mode.
type agent struct {
	env     *kit.Env
	id      string
	state   *state
	checker *checker
}

func newAgent(env *kit.Env) *agent {
	sum := sha256.Sum256([]byte(env.Hostname))
	a := &agent{
		env: env, id: fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
		state: newState(env.Hostname),
	}
	a.checker = &checker{env: env, state: a.state, log: a.log, running: map[string]*running{}}
	return a
}

// log writes a line as Consul does.
func (a *agent) log(level, format string, args ...any) {
	fmt.Fprintf(a.env.Stdout, "%s [%s] %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), level,
		fmt.Sprintf(format, args...))
}

func (a *agent) address() string {
	if addrs := a.env.Net.Addrs(); len(addrs) > 0 {
		return addrs[0].String()
	}
	return "127.0.0.1"
}

// run serves HTTP and DNS until ctx ends.
func (a *agent) run(ctx context.Context, bind string, httpPort, dnsPort int) error {
	fmt.Fprintf(a.env.Stdout, "==> Starting Consul agent...\n              Version: '%s'\n            Node name: "+
		"'%s'\n           Datacenter: '%s'\n               Server: true\n==> Log data will now stream in "+
		"as it occurs:\n\n", Version, a.state.node, datacenter)
	address := func(port int) string { return net.JoinHostPort(bind, fmt.Sprint(port)) }
	ln, err := a.env.Net.Listen("tcp", address(httpPort))
	if err != nil {
		return err
	}
	packets, err := a.env.Net.ListenPacket("udp", address(dnsPort))
	if err != nil {
		ln.Close()
		return err
	}
	stream, err := a.env.Net.Listen("tcp", address(dnsPort))
	if err != nil {
		return errors.Join(err, ln.Close(), packets.Close())
	}
	g, ctx := errgroup.WithContext(ctx)
	web := &http.Server{Handler: (&api{a, ctx}).handler(), ReadHeaderTimeout: 10 * time.Second}
	udp := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(a.resolve)}
	tcp := &dns.Server{Listener: stream, Handler: dns.HandlerFunc(a.resolve)}
	g.Go(func() error { return kit.IgnoreClosed(web.Serve(ln)) })
	g.Go(func() error { return kit.IgnoreClosed(udp.ActivateAndServe()) })
	g.Go(func() error { return kit.IgnoreClosed(tcp.ActivateAndServe()) })
	a.log("INFO", "agent: Started HTTP server: address=%s network=tcp", address(httpPort))
	a.log("INFO", "agent: Started DNS server: address=%s network=udp", address(dnsPort))
	a.log("INFO", "agent.server: New leader elected: payload=%s", a.state.node)
	a.log("INFO", "agent: Consul agent running!")
	g.Go(func() error {
		<-ctx.Done()
		a.log("INFO", "agent: Requesting shutdown")
		end, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		if web.Shutdown(end) != nil {
			web.Close()
		}
		packets.Close()
		stream.Close()
		return nil
	})
	err = g.Wait()
	a.checker.done.Wait()
	return err
}

// resolve answers questions for NAME.service.consul and NAME.node.consul.
func (a *agent) resolve(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(q)
	m.Authoritative = true
	name := strings.TrimSuffix(strings.ToLower(q.Question[0].Name), ".")
	labels := strings.Split(name, ".")
	if labels[len(labels)-1] != "consul" {
		m.Rcode = dns.RcodeRefused
		_ = w.WriteMsg(m)
		return
	}
	known := false
	header := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: q.Question[0].Name, Rrtype: t, Class: dns.ClassINET}
	}
	if i := slices.Index(labels, "service"); i > 0 {
		for _, s := range a.state.instances(labels[i-1]) {
			known = true
			healthy := a.state.checksOf(func(c *check) bool { return c.ServiceID == s.ID && c.Status == critical })
			if len(healthy) > 0 {
				continue
			}
			ip := net.ParseIP(s.Address)
			switch q.Question[0].Qtype {
			case dns.TypeSRV:
				target := fmt.Sprintf("%x.addr.%s.consul.", ip.To4(), datacenter)
				m.Answer = append(m.Answer,
					&dns.SRV{Hdr: header(dns.TypeSRV), Priority: 1, Weight: 1, Port: uint16(s.Port), Target: target})
				m.Extra = append(m.Extra,
					&dns.A{Hdr: dns.RR_Header{Name: target, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: ip})
			case dns.TypeA, dns.TypeANY:
				m.Answer = append(m.Answer, &dns.A{Hdr: header(dns.TypeA), A: ip})
			}
		}
	} else if i := slices.Index(labels, "node"); i > 0 && labels[i-1] == strings.ToLower(a.state.node) {
		known = true
		if t := q.Question[0].Qtype; t == dns.TypeA || t == dns.TypeANY {
			m.Answer = append(m.Answer, &dns.A{Hdr: header(dns.TypeA), A: net.ParseIP(a.address())})
		}
	}
	if !known {
		m.Rcode = dns.RcodeNameError
	}
	_ = w.WriteMsg(m)
}
