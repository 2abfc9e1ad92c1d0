package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) newFakeGitServer() *cobra.Command {
	return command("fake-gitserver", "Fakes a git server", func(ctx context.Context) error {
		return together(ctx, p.serveHTTP(":8000", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "I am a fake git server")
		})))
	})
}

const registryDir = "/var/registry"

// newFakeRegistryServer returns the sub-command that is an OCI registry of the files in
// /var/registry: <image>/manifests/<tag> holds a digest, and data in the directory
// <image>/{manifests,blobs}/sha256/ab/ab... the thing itself. This image comes with none; mount some.
func (p *program) newFakeRegistryServer() *cobra.Command {
	var port int
	var private bool
	c := &cobra.Command{
		Use:   "fake-registry-server",
		Short: "Starts a fake registry server for testing",
		RunE: func(c *cobra.Command, _ []string) error {
			p.log.Printf("Registry server starting with registry directory: %s", registryDir)
			p.log.Printf("HTTP server starting to listen on :%d", port)
			var h http.Handler = http.HandlerFunc(p.handleRegistry)
			if private {
				h = authenticated(h)
			}
			mux := http.NewServeMux()
			mux.Handle("/v2/", h)
			return together(c.Context(), p.serveHTTP(fmt.Sprintf(":%d", port), mux))
		},
	}
	c.Flags().IntVar(&port, "port", 5000, "Port number.")
	c.Flags().BoolVar(&private, "private", false, "Enable authentication for the registry.")
	return c
}

// authenticated lets only the user the tests know about pass.
func authenticated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "user" || password != "password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="Restricted"`)
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, "Unauthorized\n")
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (p *program) handleRegistry(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if r.URL.Path == "/v2/" {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	dir, id := path.Join(registryDir, path.Join("/", parts[0]), parts[1]), parts[2]
	switch parts[1] {
	case "blobs":
		w.Header().Set("Content-Type", "application/octet-stream")
		p.serveStored(w, r, digestPath(dir, id))
	case "manifests":
		if !strings.HasPrefix(id, "sha256:") {
			p.redirectTag(w, r, path.Join(dir, path.Join("/", id)), id)
			return
		}
		p.serveStored(w, r, digestPath(dir, id))
	default:
		http.NotFound(w, r)
	}
}

// redirectTag sends the client from a tag to the digest it stands for.
func (p *program) redirectTag(w http.ResponseWriter, r *http.Request, file, tag string) {
	digest, err := p.env.ReadFile(file)
	if err != nil {
		p.log.Printf("Tag file not found: %s, error: %v", file, err)
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Location", strings.Replace(r.URL.String(), tag, strings.TrimSpace(string(digest)), 1))
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// serveStored sends a file; a manifest goes under the media type it names itself.
func (p *program) serveStored(w http.ResponseWriter, r *http.Request, file string) {
	p.log.Printf("Serving: %s", file)
	data, err := p.env.ReadFile(file)
	if err != nil {
		p.log.Printf("File not found: %s, error: %v", file, err)
		http.NotFound(w, r)
		return
	}
	var manifest struct{ MediaType string }
	if json.Unmarshal(data, &manifest) == nil && manifest.MediaType != "" {
		w.Header().Set("Content-Type", manifest.MediaType)
	}
	w.Write(data)
}

// digestPath is where a registry keeps the content of a digest.
func digestPath(dir, digest string) string {
	algorithm, sum, ok := strings.Cut(path.Base(digest), ":")
	if !ok || len(sum) < 2 {
		return path.Join(dir, path.Base(digest))
	}
	return path.Join(dir, algorithm, sum[:2], sum, "data")
}
