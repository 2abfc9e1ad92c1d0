package agnhost

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// netexec answers questions about its pod, over HTTP and UDP, and asks other pods on behalf of a test.
type netexec struct {
	*program

	httpPort, udpPort, sctpPort int
	certFile, keyFile           string
	udpAddresses                []string
	delay                       int // seconds between SIGTERM and the end

	listening   atomic.Bool // for datagrams
	terminating atomic.Bool
}

func (p *program) newNetexec() *cobra.Command {
	n := &netexec{program: p}
	c := command("netexec", "Answer questions about this pod over HTTP and UDP, and ask other pods", n.run)
	f := c.Flags()
	f.IntVar(&n.httpPort, "http-port", 8080, "port of the HTTP server")
	f.IntVar(&n.udpPort, "udp-port", 8081, "port of the UDP server; -1 for no server")
	f.IntVar(&n.sctpPort, "sctp-port", -1, "not available")
	f.StringSliceVar(&n.udpAddresses, "udp-listen-addresses", nil, "addresses of the UDP server (default: all)")
	f.StringVar(&n.certFile, "tls-cert-file", "", "certificate; makes the HTTP server an HTTPS server")
	f.StringVar(&n.keyFile, "tls-private-key-file", "", "key of the certificate")
	f.IntVar(&n.delay, "delay-shutdown", 0, "seconds to go on serving after SIGTERM")
	return c
}

func (n *netexec) run(ctx context.Context) error {
	if n.sctpPort != -1 {
		return n.noSCTP()
	}
	server := &http.Server{Handler: n.routes()}
	if n.certFile != "" {
		var err error
		if server.TLSConfig, err = n.keyPair(n.certFile, n.keyFile); err != nil {
			return n.fatal(err)
		}
	}
	parts := []part{n.onSignal(n.terminate, syscall.SIGTERM), n.serve(fmt.Sprintf(":%d", n.httpPort), server)}
	if n.udpPort != -1 {
		servers, err := n.udpServers()
		if err != nil {
			return n.fatal(err)
		}
		parts = append(parts, servers...)
	}
	return together(ctx, parts...)
}

// terminate is what SIGTERM does: /readyz fails from now on, and everything else goes on for a while.
func (n *netexec) terminate(ctx context.Context, _ syscall.Signal) error {
	n.terminating.Store(true)
	n.log.Printf("told to terminate: goes on for %d s", n.delay)
	return sleep(ctx, time.Duration(n.delay)*time.Second)
}

// udpServers returns a part for each address to listen at. Tests repeat addresses.
func (n *netexec) udpServers() ([]part, error) {
	addresses := slices.Compact(slices.Sorted(slices.Values(n.udpAddresses)))
	if len(addresses) == 0 {
		addresses = []string{""} // everywhere
	}
	var parts []part
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a); err != nil && a != "" {
			return nil, fmt.Errorf("--udp-listen-addresses: %w", err)
		}
		addr := net.JoinHostPort(a, strconv.Itoa(n.udpPort))
		parts = append(parts, n.serveUDP(addr, func() {
			n.log.Printf("listening for datagrams at %s", addr)
			n.listening.Store(true)
		}, n.answerUDP))
	}
	return parts, nil
}

// answerUDP obeys the command in a datagram. Its name may be in capitals or not.
func (n *netexec) answerUDP(request []byte, from net.Addr) []byte {
	text := strings.TrimSpace(string(request))
	n.log.Printf("datagram from %s: %s", from, text)
	name, argument, _ := strings.Cut(text, " ")
	switch strings.ToLower(name) {
	case "hostname":
		return []byte(n.env.Hostname)
	case "clientip":
		return []byte(from.String())
	case "serverport":
		return strconv.AppendInt(nil, int64(n.udpPort), 10)
	case "echo":
		return []byte(argument)
	case "envvar":
		return []byte(n.env.Getenv(strings.TrimSpace(argument)))
	}
	return nil
}
