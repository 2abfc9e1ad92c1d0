package agnhost

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// newPorter returns the sub-command that serves fixed texts on the ports that variables such as
// SERVE_TLS_PORT_443 name.
func (p *program) newPorter() *cobra.Command {
	var asJSON bool
	c := command("porter", "Serve the texts and ports that the environment names", func(ctx context.Context) error {
		parts := []part{idle} // It waits even if it serves nothing.
		for _, variable := range p.env.Environ() {
			name, value, _ := strings.Cut(variable, "=")
			serve := func(prefix string, f func(port string) part) {
				if port, ok := strings.CutPrefix(name, prefix); ok {
					parts = append(parts, f(port))
				}
			}
			h := texts{value, asJSON}
			serve("SERVE_PORT_", func(port string) part { return p.servePort(port, h, false) })
			serve("SERVE_TCP_PORT_", func(port string) part { return p.servePort(port, h, false) })
			serve("SERVE_TLS_PORT_", func(port string) part { return p.servePort(port, h, true) })
			serve("SERVE_UDP_PORT_", func(port string) part {
				return p.serveUDP("0.0.0.0:"+port, func() { p.log.Printf("listening for datagrams on port %s", port) },
					func([]byte, net.Addr) []byte { return []byte(value) })
			})
			serve("SERVE_SCTP_PORT_", func(string) part {
				return func(context.Context) error { return p.noSCTP() }
			})
		}
		return together(ctx, parts...)
	})
	c.Flags().BoolVar(&asJSON, "json-response", false, "answer in JSON, with the method of the request")
	return c
}

// servePort returns a part that serves one port. Its failure leaves the other ports alone.
func (p *program) servePort(port string, h http.Handler, encrypted bool) part {
	return once(func(ctx context.Context) error {
		srv := &http.Server{Handler: h}
		var err error
		if encrypted {
			srv.TLSConfig, err = p.keyPair(p.getenv("CERT_FILE", "localhost.crt"),
				p.getenv("KEY_FILE", "localhost.key"))
		}
		if err == nil {
			err = p.listenAndServe(ctx, "0.0.0.0:"+port, srv)
		}
		if ctx.Err() == nil {
			p.log.Printf("server on port %q failed: %v", port, err)
		}
		return nil
	})
}

func (p *program) getenv(name, byDefault string) string {
	if value := p.env.Getenv(name); value != "" {
		return value
	}
	return byDefault
}

// texts answers every request alike.
type texts struct {
	body   string
	asJSON bool
}

func (t texts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !t.asJSON {
		fmt.Fprint(w, t.body)
		return
	}
	reply(w, struct{ Method, Body string }{r.Method, t.body})
}
