package agnhost

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// newH2CServer returns the sub-command that speaks HTTP/2 without TLS, and nothing else.
func (p *program) newH2CServer() *cobra.Command {
	var port int
	c := command("h2c-server", "Starts a simple HTTP/2 cleartext (h2c) server", func(ctx context.Context) error {
		srv := &http.Server{
			Protocols: new(http.Protocols),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				fmt.Fprint(w, "ok")
			}),
		}
		srv.Protocols.SetUnencryptedHTTP2(true)
		p.log.Printf("Serving h2c on port %d.\n", port)
		return together(ctx, p.serve(fmt.Sprintf(":%d", port), srv))
	})
	c.Flags().IntVar(&port, "port", 80, "Port number.")
	return c
}
