package cri

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

// nameserver answers for a fixed set of names at 10.0.0.53, and fails for broken.test.
func nameserver(t *testing.T, l *lab, names map[string]string) {
	t.Helper()
	h, err := l.network.AddHost(netip.MustParseAddr("10.0.0.53"))
	if err != nil {
		t.Fatal(err)
	}
	pc, err := h.NewStack().ListenPacket("udp", ":53")
	if err != nil {
		t.Fatal(err)
	}
	srv := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		name := q.Question[0].Name
		switch ip, ok := names[name]; {
		case name == "broken.test.":
			m.Rcode = dns.RcodeServerFailure
		case ok:
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(ip)})
		default:
			m.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(m)
	})}
	started := make(chan struct{})
	srv.NotifyStartedFunc = func() { close(started) }
	go srv.ActivateAndServe()
	<-started
	t.Cleanup(func() { srv.Shutdown(); h.Close() })
}

func TestNames(t *testing.T) {
	l := newLab(t)
	nameserver(t, l, map[string]string{"web.svc.test.": "10.9.9.9", "abs.olute.name.": "10.8.8.8"})
	id := l.run(l.pod("a"), []string{"wait"}, func(c *runtimeapi.ContainerConfig) {})
	c, err := l.Runtime.container(id)
	if err != nil {
		t.Fatal(err)
	}
	env := c.environment(nil)
	if err := (&kit.Env{FS: c.files.As(kit.User{}), Dir: "/"}).WriteFile("/etc/hosts", []byte("# comment\n10.7.7.7 local.name alias\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"web": "10.9.9.9", "web.svc.test.": "10.9.9.9", "abs.olute.name": "10.8.8.8", "ALIAS": "10.7.7.7", "10.1.2.3": "10.1.2.3"} {
		if got, err := env.Net.LookupHost(t.Context(), name); err != nil || got[0] != want {
			t.Errorf("%s is %v, %v, want %s", name, got, err, want)
		}
	}
	_, err = env.Net.LookupHost(t.Context(), "nosuch")
	if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound || err.Error() != "lookup nosuch on 10.0.0.53:53: no such host" {
		t.Errorf("a name that does not exist: %v", err)
	}
	_, err = env.Net.LookupHost(t.Context(), "broken.test.")
	if e, ok := errors.AsType[*net.DNSError](err); !ok || e.IsNotFound || err.Error() != "lookup broken.test. on 10.0.0.53:53: server misbehaving" {
		t.Errorf("a server that fails: %v", err)
	}
	_, err = env.Net.DialContext(t.Context(), "tcp", "nosuch:80")
	if err == nil || err.Error() != "dial tcp: lookup nosuch on 10.0.0.53:53: no such host" {
		t.Errorf("dial a name that does not exist: %v", err)
	}
}

func TestDeadNameserver(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, nil)
	c, err := l.Runtime.container(id)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = c.environment(nil).Net.LookupHost(ctx, "web")
	if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsTimeout {
		t.Errorf("a nameserver that is not there: %v", err)
	}
}
