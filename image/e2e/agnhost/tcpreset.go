package agnhost

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"github.com/spf13/cobra"
)

// newTCPReset returns the sub-command that resets its connections: it closes them with data unread.
func (p *program) newTCPReset() *cobra.Command {
	var port int
	c := command("tcp-reset", "Serves on a tcp port and RST the connections received", func(ctx context.Context) error {
		stop := p.onSignal(func(_ context.Context, sig syscall.Signal) error {
			p.log.Printf("Shutting down after receiving signal: %s.\n", sig)
			p.log.Printf("Awaiting pod deletion.\n")
			return nil
		}, syscall.SIGTERM)
		p.log.Printf("Serving on port %d.\n", port)
		return together(ctx, stop, p.serveTCP(fmt.Sprintf(":%d", port), func(_ context.Context, c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			c.Close()
			p.log.Printf("TCP request from %s", c.RemoteAddr())
		}))
	})
	c.Flags().IntVar(&port, "port", 8080, "Port number.")
	return c
}
