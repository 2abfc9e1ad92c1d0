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
	c := command("test-webserver", "Serve all files", func(ctx context.Context) error {
		server := http.FileServer(http.FS(files{p.env.FS}))
		all := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*") // Pages of a local proxy may ask, too.
			r.Header.Del("If-Modified-Since")                  // Who polls wants to see the content each time.
			server.ServeHTTP(w, r)
		})
		return together(ctx, p.serveHTTP(fmt.Sprintf(":%d", port), all))
	})
	c.Flags().IntVar(&port, "port", 80, "port to serve at")
	return c
}
