package agnhost

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// lifetime is how long the liveness server reports that it is healthy.
const lifetime = 10 * time.Second

func (p *program) newLiveness() *cobra.Command {
	return command("liveness", "Starts a server that is alive for 10 seconds", func(ctx context.Context) error {
		started := time.Now()
		mux := http.NewServeMux()
		mux.HandleFunc("/started", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, time.Since(started))
		})
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
			if age := time.Since(started); age > lifetime {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprintf(w, "error: %v", age.Seconds())
				return
			}
			fmt.Fprint(w, "ok")
		})
		mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Query().Get("loc"), http.StatusFound)
		})
		return together(ctx, p.serveHTTP(":8080", mux))
	})
}
