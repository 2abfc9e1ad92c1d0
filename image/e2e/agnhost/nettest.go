package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	"github.com/spf13/cobra"
)

// newNettest returns the sub-command that counts who has written to it. A hook that runs as a pod ends
// posts {"Source": "NAME"} to /write; whoever wants to know whether it did asks /read.
func (p *program) newNettest() *cobra.Command {
	var port int
	c := command("nettest", "Count who writes to this pod", func(ctx context.Context) error {
		var mu sync.Mutex
		received := map[string]int{}
		mux := http.NewServeMux()
		mux.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {
			var message struct{ Source string }
			if err := json.NewDecoder(r.Body).Decode(&message); err != nil || message.Source == "" {
				http.Error(w, `post {"Source": "NAME"}`, http.StatusBadRequest)
				return
			}
			mu.Lock()
			received[message.Source]++
			mu.Unlock()
			io.WriteString(w, document(map[string]string{"Hostname": p.env.Hostname}).body)
		})
		mux.HandleFunc("/read", func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			state := map[string]any{"Hostname": p.env.Hostname, "Received": maps.Clone(received)}
			mu.Unlock()
			io.WriteString(w, document(state).body)
		})
		return together(ctx, p.serveHTTP(fmt.Sprintf(":%d", port), mux))
	})
	c.Flags().IntVar(&port, "port", 8080, "port to serve at")
	return c
}
