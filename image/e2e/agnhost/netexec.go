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

	"github.com/aiopslab/aiopslab/kit"
)

// netexec serves HTTP and UDP end points that tell about the connection and the pod, and that make
// connections to others.
type netexec struct {
	*program

	httpPort, udpPort, sctpPort int
	certFile, keyFile           string
	override                    string
	udpAddresses                string
	delayShutdown               int

	server     *http.Server
	ready      atomic.Bool   // the UDP server runs
	terminated chan struct{} // closed on SIGTERM
	exits      chan exitRequest
}

// exitRequest is how an HTTP handler ends the program.
type exitRequest struct {
	code    int
	timeout time.Duration // to let connections finish; 0 ends them at once
}

func (p *program) newNetexec() *cobra.Command {
	n := &netexec{
		program:    p,
		server:     &http.Server{},
		terminated: make(chan struct{}),
		exits:      make(chan exitRequest, 1),
	}
	c := command("netexec", "Creates HTTP(S) and UDP servers with various endpoints", n.run)
	f := c.Flags()
	f.IntVar(&n.httpPort, "http-port", 8080, "HTTP Listen Port")
	f.StringVar(&n.certFile, "tls-cert-file", "", "File containing an x509 certificate for HTTPS")
	f.StringVar(&n.keyFile, "tls-private-key-file", "", "File containing an x509 private key matching --tls-cert-file")
	f.IntVar(&n.udpPort, "udp-port", 8081, "UDP Listen Port, -1 for none")
	f.IntVar(&n.sctpPort, "sctp-port", -1, "SCTP Listen Port, -1 for none")
	f.StringVar(&n.override, "http-override", "", "Override the HTTP handler to always respond as if it were a GET with this path & params")
	f.StringVar(&n.udpAddresses, "udp-listen-addresses", "", "A comma separated list of ip addresses the udp servers listen from")
	f.IntVar(&n.delayShutdown, "delay-shutdown", 0, "Number of seconds to delay shutdown when receiving SIGTERM.")
	return c
}

func (n *netexec) run(ctx context.Context) error {
	if n.sctpPort != -1 {
		return n.noSCTP()
	}
	n.server.Handler = n.routes()
	if n.override != "" {
		n.server.Handler = n.overridden(n.server.Handler)
	}
	if n.certFile != "" {
		config, err := n.keyPair(n.certFile, n.keyFile)
		if err != nil {
			return n.fatal(err)
		}
		n.server.TLSConfig = config
	}
	parts := []part{n.onSignal(n.terminate, syscall.SIGTERM), n.awaitExit}
	if n.udpPort != -1 {
		addresses, err := n.addresses()
		if err != nil {
			return n.fatal(err)
		}
		for _, a := range addresses {
			parts = append(parts, n.udpServer(a))
		}
	}
	n.log.Printf("Started HTTP server on port %d", n.httpPort)
	return together(ctx, append(parts, n.serve(fmt.Sprintf(":%d", n.httpPort), n.server))...)
}

// terminate is what SIGTERM does: /readyz fails at once, the rest goes on for a while.
func (n *netexec) terminate(ctx context.Context, _ syscall.Signal) error {
	close(n.terminated)
	if n.delayShutdown > 0 {
		n.log.Printf("Sleeping %d seconds before terminating...", n.delayShutdown)
	}
	return sleep(ctx, time.Duration(n.delayShutdown)*time.Second)
}

// awaitExit ends the program when a handler asks for it.
func (n *netexec) awaitExit(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case e := <-n.exits:
		if e.timeout > 0 {
			limit, cancel := context.WithTimeout(ctx, e.timeout)
			defer cancel()
			n.log.Printf("Graceful shutdown completed with: %v", n.server.Shutdown(limit))
		}
		return kit.Exit(e.code)
	}
}

// requestExit passes a request on. The first one counts.
func (n *netexec) requestExit(e exitRequest) {
	select {
	case n.exits <- e:
	default:
	}
}

// addresses returns where the UDP servers listen; the empty address is everywhere.
func (n *netexec) addresses() ([]string, error) {
	list := strings.Split(n.udpAddresses, ",")
	if n.udpAddresses == "" {
		return list, nil
	}
	for _, a := range list {
		if _, err := netip.ParseAddr(a); err != nil {
			return nil, fmt.Errorf("parseAddress: invalid address %s", a)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func (n *netexec) udpServer(address string) part {
	serve := n.serveUDP(net.JoinHostPort(address, strconv.Itoa(n.udpPort)), func() {
		n.log.Printf("Started UDP server on port %s %d", address, n.udpPort)
		n.ready.Store(true)
	}, n.answerUDP)
	return func(ctx context.Context) error {
		defer n.ready.Store(false)
		return serve(ctx)
	}
}

// answerUDP obeys a command. Commands, and what is echoed, are not case-sensitive.
func (n *netexec) answerUDP(request []byte, from net.Addr) []byte {
	raw := strings.TrimSpace(string(request))
	text := strings.ToLower(raw)
	verb, _, _ := strings.Cut(text, " ")
	switch {
	case text == "hostname":
		n.log.Println("Sending udp hostName response")
		return []byte(n.env.Hostname)
	case text == "clientip":
		n.log.Printf("Sending clientip back to UDP client %s\n", from)
		return []byte(from.String())
	case text == "serverport":
		n.log.Printf("Sending server port to UDP client %d\n", n.udpPort)
		return []byte(strconv.Itoa(n.udpPort))
	case verb == "echo" && text != verb:
		msg := strings.TrimPrefix(text, "echo ")
		n.log.Printf("Echoing %v to UDP client %s\n", msg, from)
		return []byte(msg)
	case verb == "envvar" && text != verb:
		name := strings.TrimSpace(raw[len("envvar "):])
		n.log.Printf("Sending UDP envvar response for %s", name)
		return []byte(n.env.Getenv(name))
	case text != "":
		n.log.Printf("Unknown UDP command received from %s: %v\n", from, text)
	}
	return nil
}
