package agnhost

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

// files shows a container's files to package http.
type files struct{ kit.FS }

func (f files) Open(name string) (fs.File, error) {
	return f.OpenFile("/"+name, os.O_RDONLY, 0)
}

// newTestWebserver returns the sub-command that serves every file there is.
func (p *program) newTestWebserver() *cobra.Command {
	var port int
	c := command("test-webserver", "Starts a simple HTTP fileserver", func(ctx context.Context) error {
		server := http.FileServer(http.FS(files{p.env.FS}))
		return together(ctx, p.serveHTTP(fmt.Sprintf(":%d", port), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Cache-Control", "private")
			// A page that came through a local proxy to the API server may ask, too.
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
			h.Set("Access-Control-Allow-Headers", "DNT,X-Mx-ReqToken,Keep-Alive,User-Agent,X-Requested-With,Cache-Control,Content-Type")
			r.Header.Del("If-Modified-Since") // Who polls wants to see the content each time.
			server.ServeHTTP(w, r)
		})))
	})
	c.Flags().IntVar(&port, "port", 80, "Port number.")
	return c
}
