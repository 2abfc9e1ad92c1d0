package flagd

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

// ui is flagd-ui.
type ui struct {
	env  *kit.Env
	file string
}

// UIMain serves the page by which people change flags, and the two calls under it.
func UIMain(ctx context.Context, env *kit.Env) error {
	u := &ui{env: env, file: "/app/data/demo.flagd.json"}
	port := env.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	ln, err := env.Net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: u.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	fmt.Fprintf(env.Stdout, "%s [info] Running the flag editor at http://0.0.0.0:%s\n", clock(), port)
	return kit.IgnoreClosed(srv.Serve(netutil.LimitListener(ln, maxConns)))
}

func clock() string { return time.Now().UTC().Format("15:04:05.000") }

// handler serves everything below /feature as well, where the shop's proxy has it.
func (u *ui) handler() http.Handler {
	mux := http.NewServeMux()
	for _, base := range []string{"", "/feature"} {
		mux.HandleFunc("GET "+base+"/api/read", u.read)
		mux.HandleFunc("POST "+base+"/api/write", u.write)
		mux.Handle("GET "+base+"/{$}", page.New(html))
	}
	mux.Handle("GET /feature", http.RedirectHandler("/feature/", http.StatusMovedPermanently))
	return mux
}

func (u *ui) read(w http.ResponseWriter, _ *http.Request) {
	data, err := u.env.ReadFile(u.file)
	if err != nil {
		http.Error(w, "the flags cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

func (u *ui) write(w http.ResponseWriter, r *http.Request) {
	data, err := written(http.MaxBytesReader(w, r.Body, maxFile))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := u.replace(data); err != nil {
		fmt.Fprintf(u.env.Stdout, "%s [error] The flags cannot be written: %v\n", clock(), err)
		http.Error(w, "the flags cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(u.env.Stdout, "%s [info] The flags were changed by %s\n", clock(), r.RemoteAddr)
	reply(w, http.StatusOK, map[string]string{})
}

// written reads the flags that somebody wants there to be.
func written(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if nesting.Depth(string(body)) > maxDepth {
		return nil, errors.New("the flags are nested too deep")
	}
	var q struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("the request is no JSON with data: %w", err)
	}
	if !strings.HasPrefix(string(q.Data["flags"]), "{") {
		return nil, errors.New("the request has no data with flags")
	}
	return json.MarshalIndent(q.Data, "", "  ")
}

// replace writes the file at once: flagd never sees half of it.
func (u *ui) replace(data []byte) error {
	next := u.file + ".new"
	if err := u.env.WriteFile(next, data, 0o644); err != nil {
		return err
	}
	return u.env.FS.Rename(next, u.file)
}
