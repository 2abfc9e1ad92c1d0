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
	return command("liveness", "Be healthy for ten seconds, then no more", func(ctx context.Context) error {
		started := time.Now()
		mux := http.NewServeMux()
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
			if age := time.Since(started); age > lifetime {
				http.Error(w, fmt.Sprintf("%v old, which is over %v", age, lifetime), http.StatusInternalServerError)
			}
		})
		return together(ctx, p.serveHTTP(":8080", mux))
	})
}
