package kit

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
)

// pingBytes is what an echo carries, as ping does by default.
const pingBytes = 56

// Ping implements Pinger. It takes the right to open a raw socket, which root has in a container, or one of those
// that the kernel gives to groups.
func (n hostNetwork) Ping(ctx context.Context, host string) (net.IP, time.Duration, error) {
	ip, err := n.lookupIPv4(ctx, host)
	if err != nil {
		return nil, 0, err
	}
	var to net.Addr = &net.IPAddr{IP: ip}
	conn, err := icmp.ListenPacket("ip4:icmp", "0.0.0.0")
	if errors.Is(err, os.ErrPermission) {
		to = &net.UDPAddr{IP: ip}
		conn, err = icmp.ListenPacket("udp4", "0.0.0.0")
	}
	if err != nil {
		return ip, 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	took, err := echo(conn, to)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return ip, took, err
}

func (n hostNetwork) lookupIPv4(ctx context.Context, host string) (net.IP, error) {
	addrs, err := n.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() {
			return ip.AsSlice(), nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// echo sends a packet and waits until it comes back. What it carries tells it from those of others.
func echo(conn *icmp.PacketConn, to net.Addr) (time.Duration, error) {
	data := make([]byte, pingBytes)
	for i := range data {
		data[i] = byte(rand.IntN(256))
	}
	packet, err := (&icmp.Message{
		Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: os.Getpid() & 0xffff, Seq: 1, Data: data},
	}).Marshal(nil)
	if err != nil {
		return 0, err
	}
	sent := time.Now()
	if _, err := conn.WriteTo(packet, to); err != nil {
		return 0, err
	}
	for buf := make([]byte, 1500); ; {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return 0, err
		}
		m, err := icmp.ParseMessage(ipv4.ICMPTypeEchoReply.Protocol(), buf[:n])
		if err != nil || m.Type != ipv4.ICMPTypeEchoReply {
			continue
		}
		if e, ok := m.Body.(*icmp.Echo); ok && bytes.Equal(e.Data, data) {
			return time.Since(sent), nil
		}
	}
}
