package vnet

import (
	"context"
	"net/netip"
	"syscall"
	"time"
)

// Ping sends an ICMP echo to a host's address and returns the round-trip time. Service addresses do not answer, as
// they do not under kube-proxy. A lost echo is never answered, so ctx must end.
func (s *Stack) Ping(ctx context.Context, addr netip.Addr) (time.Duration, error) {
	n, start := s.host.net, time.Now()
	if addr.IsLoopback() || addr == s.host.addr {
		return time.Since(start), nil
	}
	silent := func() (time.Duration, error) {
		<-ctx.Done()
		return 0, contextError(ctx.Err())
	}
	target := n.Host(addr)
	switch {
	case target == nil && contains(n.cfg.Virtual, addr):
		return silent()
	case target == nil && !contains(n.cfg.Subnets, addr):
		return 0, sysError("sendto", syscall.ENETUNREACH)
	case target == nil:
		if err := s.unreachable(ctx, addr); err != nil {
			return 0, err
		}
		return silent()
	case !n.admit(s.host.addr, "icmp", netip.AddrPortFrom(addr, 0)):
		return silent()
	}
	answered, err := s.handshake(ctx, target)
	if err != nil {
		return 0, err
	}
	if !answered {
		return silent()
	}
	return time.Since(start), nil
}
