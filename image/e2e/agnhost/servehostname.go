package agnhost

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	// awaitDeletion is how long the server goes on after SIGTERM.
	awaitDeletion = 60 * time.Second
	// lingering is how long a closing connection still takes what the client sends. Unread data
	// would reset the connection, and the client might lose the answer.
	lingering = 500 * time.Millisecond
)

// newServeHostname returns the sub-command that answers with the pod's name.
func (p *program) newServeHostname() *cobra.Command {
	var tcp, udp, web, closing bool
	var port int
	c := command("serve-hostname", "Answer everybody with the name of this pod", func(ctx context.Context) error {
		if web && (tcp || udp) {
			return p.fatal("one port cannot serve HTTP and something else: add --http=false")
		}
		addr := fmt.Sprintf(":%d", port)
		parts := []part{p.awaitDeletion()}
		if tcp {
			parts = append(parts, p.serveTCP(addr, p.sendHostname))
		}
		if udp {
			parts = append(parts, p.serveUDP(addr, func() {}, func(_ []byte, from net.Addr) []byte {
				p.log.Printf("datagram from %s", from)
				return []byte(p.env.Hostname)
			}))
		}
		if web {
			parts = append(parts, p.serveHTTP(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p.log.Printf("request from %s", r.RemoteAddr)
				if closing {
					w.Header().Set("Connection", "close")
				}
				fmt.Fprint(w, p.env.Hostname)
			})))
		}
		return together(ctx, parts...)
	})
	f := c.Flags()
	f.BoolVar(&tcp, "tcp", false, "answer every connection")
	f.BoolVar(&udp, "udp", false, "answer every datagram")
	f.BoolVar(&web, "http", true, "answer every HTTP request")
	f.BoolVar(&closing, "close", false, "close the connection after each HTTP request")
	f.IntVar(&port, "port", 9376, "port to serve at")
	return c
}

// awaitDeletion returns a part that, after SIGTERM, goes on until the pod is most likely gone from
// everybody's list of endpoints.
func (p *program) awaitDeletion() part {
	return p.onSignal(func(ctx context.Context, sig syscall.Signal) error {
		p.log.Printf("signal %s: goes on until nobody asks any more", sig)
		return sleep(ctx, awaitDeletion)
	}, syscall.SIGTERM)
}

func (p *program) sendHostname(_ context.Context, c net.Conn) {
	defer c.Close()
	p.log.Printf("connection from %s", c.RemoteAddr())
	if _, err := io.WriteString(c, p.env.Hostname); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(lingering))
		_, _ = io.Copy(io.Discard, c)
	}
}
