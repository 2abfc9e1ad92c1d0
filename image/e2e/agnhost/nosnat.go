package agnhost

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// newNoSnatTest returns the sub-command with which pods find out whether they see each other's own
// addresses.
func (p *program) newNoSnatTest() *cobra.Command {
	var port string
	c := command("no-snat-test", "Creates the /checknosnat and /whoami endpoints", func(ctx context.Context) error {
		addrs := map[string]string{}
		for _, name := range []string{"POD_IP", "NODE_IP"} {
			value, ok := p.env.Vars[name]
			if !ok {
				return p.fails("%s env var was not present in the environment", name)
			}
			if _, err := netip.ParseAddr(value); err != nil {
				return p.fails("%s env var contained %q, which is not an IP address", name, value)
			}
			addrs[name] = value
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.RemoteAddr)
		})
		mux.HandleFunc("/checknosnat", func(w http.ResponseWriter, r *http.Request) {
			var problems []string
			for ip := range strings.SplitSeq(r.URL.Query().Get("ips"), ",") {
				if err := p.checkSnat(r.Context(), ip, addrs["POD_IP"], addrs["NODE_IP"]); err != nil {
					problems = append(problems, err.Error())
				}
			}
			if len(problems) > 0 {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, strings.Join(problems, ", "))
			}
		})
		return together(ctx, p.serveHTTP(":"+port, mux))
	})
	c.Flags().StringVar(&port, "port", "8080", "The port to serve /checknosnat and /whoami endpoints on.")
	return c
}

// checkSnat asks somebody whom the request seems to come from.
func (p *program) checkSnat(ctx context.Context, peer, pod, node string) error {
	body, err := p.get(ctx, fmt.Sprintf("http://%s/whoami", peer))
	if err != nil {
		return err
	}
	seen, _, _ := strings.Cut(body, ":")
	switch seen {
	case pod:
		return nil
	case node:
		return fmt.Errorf("returned ip %q != my Pod ip %q, == my Node ip %q - SNAT", seen, pod, node)
	}
	return fmt.Errorf("returned ip %q != my Pod ip %q or my Node ip %q - SNAT to unexpected ip (possible SNAT through unexpected interface on the way into another node)", seen, pod, node)
}

// newNoSnatTestProxy returns the sub-command that passes a check on to a pod and its answer back.
func (p *program) newNoSnatTestProxy() *cobra.Command {
	var port string
	c := command("no-snat-test-proxy", "Creates a proxy for the /checknosnat endpoint", func(ctx context.Context) error {
		transport := p.env.HTTPTransport()
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		mux := http.NewServeMux()
		mux.HandleFunc("/checknosnat", func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			target := fmt.Sprintf("http://%s/checknosnat?ips=%s", q.Get("target"), url.QueryEscape(q.Get("ips")))
			req, err := http.NewRequestWithContext(r.Context(), "GET", target, nil)
			var resp *http.Response
			if err == nil {
				resp, err = client.Do(req)
			}
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprintf(w, "error querying %q, err: %v", target, err)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
			io.Copy(w, resp.Body)
		})
		return together(ctx, p.serveHTTP(":"+port, mux))
	})
	c.Flags().StringVar(&port, "port", "31235", "The port to serve /checknosnat endpoint on.")
	return c
}
