package box

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/kit"
)

// cluster is the cluster's network as the agent's machine sees it: it can connect to what is in it,
// and nothing can connect to the machine.
type cluster struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	server string   // of DNS; an IP address
	search []string // domains that a short name may be in
}

var _ kit.Network = (*cluster)(nil)

// DialContext connects to a host in the cluster.
func (c *cluster) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := c.LookupHost(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	for _, a := range addrs {
		if ip, perr := netip.ParseAddr(a); perr == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
			err = syscall.ECONNREFUSED // Nothing listens on the agent's machine.
			continue
		}
		var conn net.Conn
		if conn, err = c.dial(ctx, network, net.JoinHostPort(a, port)); err == nil {
			return conn, nil
		}
	}
	if _, ok := errors.AsType[*net.OpError](err); !ok {
		err = &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return nil, err
}

// LookupHost asks the cluster's DNS, in the search domains first.
func (c *cluster) LookupHost(ctx context.Context, host string) ([]string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []string{ip.String()}, nil
	}
	if host == "localhost" {
		return []string{"127.0.0.1"}, nil
	}
	fail := &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	for _, name := range c.candidates(host) {
		addrs, err := c.ask(ctx, name)
		switch {
		case err != nil:
			return nil, &net.DNSError{Err: err.Error(), Name: host, Server: c.server, IsTemporary: true}
		case len(addrs) > 0:
			return addrs, nil
		}
	}
	return nil, fail
}

// candidates are the full names that a name may stand for.
func (c *cluster) candidates(host string) []string {
	if strings.HasSuffix(host, ".") {
		return []string{host}
	}
	var list []string
	for _, s := range c.search {
		list = append(list, host+"."+s+".")
	}
	return append(list, host+".")
}

// ask resolves one full name, over TCP, which every kind of cluster can be dialled by.
func (c *cluster) ask(ctx context.Context, name string) (addrs []string, err error) {
	conn, err := c.dial(ctx, "tcp", net.JoinHostPort(c.server, "53"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	q := new(dns.Msg)
	q.SetQuestion(name, dns.TypeA)
	d := &dns.Conn{Conn: conn}
	if err := d.WriteMsg(q); err != nil {
		return nil, err
	}
	answer, err := d.ReadMsg()
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Answer {
		if a, ok := r.(*dns.A); ok {
			addrs = append(addrs, a.A.String())
		}
	}
	return addrs, nil
}

// errNoListener is why the agent's machine offers nothing.
var errNoListener = &net.OpError{Op: "listen", Err: syscall.EPERM}

// Listen fails.
func (*cluster) Listen(string, string) (net.Listener, error) { return nil, errNoListener }

// ListenPacket fails.
func (*cluster) ListenPacket(string, string) (net.PacketConn, error) { return nil, errNoListener }

// Addrs returns none.
func (*cluster) Addrs() []net.IP { return nil }
