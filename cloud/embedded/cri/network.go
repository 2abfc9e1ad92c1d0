package cri

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// network is a container's network: its pod's host, with names resolved as libc does, by the files
// /etc/hosts and /etc/resolv.conf of the container.
type network struct {
	stack *vnet.Stack
	files kit.FS
}

var (
	_ kit.Network      = network{}
	_ kit.Pinger       = network{}
	_ kit.SocketLister = network{}
)

// NewNetwork returns a network for something that is not in a container. It opens sockets on a stack, and resolves
// names by the files of a file system.
func NewNetwork(s *vnet.Stack, files kit.FS) kit.Network { return network{s, files} }

func (n network) Listen(network, address string) (net.Listener, error) {
	return n.stack.Listen(network, address)
}

func (n network) ListenPacket(network, address string) (net.PacketConn, error) {
	return n.stack.ListenPacket(network, address)
}

func (n network) Addrs() []net.IP { return []net.IP{n.stack.Host().Addr().AsSlice()} }

// DialContext resolves the host and tries its addresses in turn.
func (n network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	addrs := []string{host}
	if _, err := netip.ParseAddr(host); err != nil && host != "" {
		if addrs, err = n.LookupHost(ctx, host); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
	}
	var first error
	for _, a := range addrs {
		c, err := n.stack.DialContext(ctx, network, net.JoinHostPort(a, port))
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (n network) Ping(ctx context.Context, host string) (net.IP, time.Duration, error) {
	addrs, err := n.LookupHost(ctx, host)
	if err != nil {
		return nil, 0, err
	}
	addr, err := netip.ParseAddr(addrs[0])
	if err != nil {
		return nil, 0, err
	}
	d, err := n.stack.Ping(ctx, addr)
	return addr.AsSlice(), d, err
}

func (n network) Sockets() []kit.Socket {
	var list []kit.Socket
	for _, s := range n.stack.Host().Sockets() {
		k := kit.Socket{Network: s.Network, Local: s.Local, Remote: s.Remote}
		switch {
		case s.Listening:
			k.State = "LISTEN"
		case s.Network == "tcp":
			k.State = "ESTABLISHED"
		}
		list = append(list, k)
	}
	return list
}

// LookupHost resolves a name to IPv4 addresses.
func (n network) LookupHost(ctx context.Context, host string) ([]string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []string{a.String()}, nil
	}
	if addrs := n.hostsFile(host); len(addrs) > 0 {
		return addrs, nil
	}
	conf := n.resolvConf()
	if len(conf.Servers) == 0 || host == "" {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var failure error
	for _, name := range conf.NameList(host) {
		addrs, err := n.query(ctx, conf, host, name)
		if err == nil {
			return addrs, nil
		}
		if e, ok := errors.AsType[*net.DNSError](err); ok && !e.IsNotFound {
			return nil, err
		}
		failure = err
	}
	return nil, failure
}

// hostsFile finds a name in /etc/hosts.
func (n network) hostsFile(host string) (addrs []string) {
	f, err := n.files.OpenFile("/etc/hosts", os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	want := strings.ToLower(strings.TrimSuffix(host, "."))
	s := bufio.NewScanner(f)
	for s.Scan() {
		line, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(line)
		for _, name := range fields[min(1, len(fields)):] {
			if a, err := netip.ParseAddr(fields[0]); err == nil && a.Is4() && strings.ToLower(name) == want {
				addrs = append(addrs, fields[0])
			}
		}
	}
	return addrs
}

func (n network) resolvConf() *dns.ClientConfig {
	f, err := n.files.OpenFile("/etc/resolv.conf", os.O_RDONLY, 0)
	if err != nil {
		return &dns.ClientConfig{}
	}
	defer f.Close()
	conf, err := dns.ClientConfigFromReader(f)
	if err != nil {
		return &dns.ClientConfig{}
	}
	return conf
}

// query asks the servers for the addresses of one fully qualified name.
func (n network) query(ctx context.Context, conf *dns.ClientConfig, host, name string) ([]string, error) {
	q := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA)
	q.Id = uint16(rand.Uint32())
	timeout := time.Duration(max(conf.Timeout, 1)) * time.Second
	failed := &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	for range max(conf.Attempts, 1) {
		for _, server := range conf.Servers {
			server = net.JoinHostPort(server, conf.Port)
			m, err := n.exchange(ctx, q, server, timeout)
			if err != nil {
				failed = &net.DNSError{Err: err.Error(), Name: host, Server: server, IsTemporary: true}
				if ne, ok := errors.AsType[net.Error](err); ok {
					failed.IsTimeout = ne.Timeout()
				}
				if ctx.Err() != nil {
					return nil, failed
				}
				continue
			}
			var addrs []string
			for _, rr := range m.Answer {
				if a, ok := rr.(*dns.A); ok {
					addrs = append(addrs, a.A.String())
				}
			}
			switch {
			case len(addrs) > 0:
				return addrs, nil
			case m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError:
				return nil, &net.DNSError{Err: "no such host", Name: host, Server: server, IsNotFound: true}
			}
			failed = &net.DNSError{Err: "server misbehaving", Name: host, Server: server, IsTemporary: true}
		}
	}
	return nil, failed
}

// exchange sends one question over UDP, and over TCP if the answer did not fit.
func (n network) exchange(ctx context.Context, q *dns.Msg, server string, timeout time.Duration) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, network := range []string{"udp", "tcp"} {
		c, err := n.stack.DialContext(ctx, network, server)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
		co := &dns.Conn{Conn: c}
		err = co.WriteMsg(q)
		var m *dns.Msg
		if err == nil {
			m, err = co.ReadMsg()
		}
		stop()
		c.Close()
		if err != nil && !errors.Is(err, dns.ErrBuf) {
			return nil, err
		}
		if err == nil && !m.Truncated {
			return m, nil
		}
	}
	return nil, io.ErrUnexpectedEOF
}
