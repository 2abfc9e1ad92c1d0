package agnhost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

// netTester runs network tests, one at once or whenever an HTTP request asks for one.
type netTester struct {
	*program
	serveAddr, runner, options string
	delayShutdown              int
}

func (p *program) newNet() *cobra.Command {
	n := &netTester{program: p}
	c := command("net", "Creates webserver or runner for various networking tests", n.run)
	f := c.Flags()
	f.StringVar(&n.serveAddr, "serve", "", "Address and port to bind to (e.g. 127.0.0.1:8080), to run runners on request")
	f.StringVar(&n.runner, "runner", "", "Runner to execute (available: "+strings.Join(slices.Sorted(maps.Keys(n.runners())), " ")+")")
	f.StringVar(&n.options, "options", "", "JSON options to the Runner")
	f.IntVar(&n.delayShutdown, "delay-shutdown", 0, "Number of seconds to delay shutdown when receiving SIGTERM.")
	return c
}

func (n *netTester) run(ctx context.Context) error {
	var parts []part
	if n.delayShutdown > 0 {
		parts = append(parts, n.delayTermination(n.delayShutdown, "Sleeping %d seconds before terminating..."))
	}
	switch {
	case n.serveAddr != "":
		n.log.Printf("Running server on %v", n.serveAddr)
		parts = append(parts, func(ctx context.Context) error {
			mux := http.NewServeMux()
			mux.HandleFunc("/run/", func(w http.ResponseWriter, r *http.Request) { n.handleRun(ctx, w, r) })
			return n.serveHTTP(n.serveAddr, mux)(ctx)
		})
	case n.runner != "":
		parts = append(parts, func(ctx context.Context) error {
			output, err := n.execute(ctx, n.runner, []byte(n.options))
			if err != nil && ctx.Err() == nil {
				n.log.Printf("Error: %v", err)
				err = kit.Exit(1)
			}
			n.printf("output:\n\n%s", output)
			return err
		})
	default:
		return n.fatal("Must set either --runner or --serve, see --help")
	}
	return together(ctx, parts...)
}

func (n *netTester) execute(ctx context.Context, name string, options []byte) (output string, err error) {
	run := n.runners()[name]
	if run == nil {
		return "", fmt.Errorf("invalid runner: %q, see --help", name)
	}
	n.log.Printf("Options: %s", options)
	var buf bytes.Buffer
	err = run(ctx, log.New(&buf, "# ", log.Lshortfile), options)
	return buf.String(), err
}

// handleRun runs what a request asks for in the program's context, not in the request's: connections
// it leaks are to outlive it.
func (n *netTester) handleRun(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		http.Error(w, fmt.Sprintf("error reading body: %v", err), http.StatusBadRequest)
		return
	case len(body) == 0:
		http.Error(w, "Missing request body", http.StatusBadRequest)
		return
	}
	output, err := n.execute(ctx, strings.TrimPrefix(r.URL.Path, "/run/"), body)
	if err != nil {
		http.Error(w, fmt.Sprintf("Error from runner: %v\noutput:\n\n%s", err, output), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok\noutput:\n\n"+output)
}
