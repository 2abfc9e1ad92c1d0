package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

const (
	registerTimeout = 15 * time.Second
	registerRetry   = time.Second
)

// guestbook is a key-value store of one primary and its replicas, and the front end before them.
// Each is the same program; what it is depends on who talks to it.
type guestbook struct {
	*program
	httpPort, backendPort, replicaOf string

	mu       sync.Mutex
	store    map[string]any
	replicas []string
}

func (p *program) newGuestbook() *cobra.Command {
	g := &guestbook{program: p, store: map[string]any{}}
	c := command("guestbook", "Creates a HTTP server with various endpoints representing a guestbook app", g.run)
	c.Flags().StringVar(&g.httpPort, "http-port", "80", "HTTP Listen Port")
	c.Flags().StringVar(&g.backendPort, "backend-port", "6379", "Backend's HTTP Listen Port")
	c.Flags().StringVar(&g.replicaOf, "replicaof", "", "The host's name to register to")
	return c
}

func (g *guestbook) run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/register", g.handleRegister)
	mux.HandleFunc("/get", g.handleGet)
	mux.HandleFunc("/set", g.handleSet)
	mux.HandleFunc("/guestbook", g.handleGuestbook)
	parts := []part{g.serveHTTP(":"+g.httpPort, mux)}
	if g.replicaOf != "" {
		parts = append(parts, once(g.register))
	}
	return together(ctx, parts...)
}

// register tells the primary where this replica is and takes over what it has stored.
func (g *guestbook) register(ctx context.Context) error {
	primary := net.JoinHostPort(g.replicaOf, g.backendPort)
	for start := time.Now(); time.Since(start) < registerTimeout; {
		response, err := g.announce(ctx, primary)
		if err != nil {
			g.log.Printf("encountered error while registering to primary: %v. Retrying in %s.", err, registerRetry)
			if err := sleep(ctx, registerRetry); err != nil {
				return err
			}
			continue
		}
		var answer struct{ Data map[string]any }
		if err := json.Unmarshal([]byte(response), &answer); err != nil {
			return g.fatalf("Error while unmarshaling primary's response: %v", err)
		}
		g.mu.Lock()
		maps.Copy(g.store, answer.Data)
		g.mu.Unlock()
		g.log.Printf("Registered to node: %s", g.replicaOf)
		return nil
	}
	return g.fatal("Timed out while registering to primary.")
}

func (g *guestbook) announce(ctx context.Context, primary string) (string, error) {
	// The own address that faces the primary is the one it can be reached at from there.
	conn, err := g.env.Net.DialContext(ctx, "udp", primary)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	own, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return "", err
	}
	g.log.Printf("Registering to primary: %s/register?host=%s", primary, own)
	return g.dialHTTP(ctx, "register?host="+own, primary)
}

func (g *guestbook) handleRegister(w http.ResponseWriter, r *http.Request) {
	host := r.URL.Query().Get("host")
	g.log.Printf("GET /register?host=%s", host)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reply(w, map[string]any{"data": g.store})
	g.replicas = append(g.replicas, host)
	g.log.Printf("Node '%s' registered.", host)
}

func (g *guestbook) handleGet(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	g.log.Printf("GET /get?key=%s", key)
	g.mu.Lock()
	defer g.mu.Unlock()
	var value any = g.store
	if key != "" {
		var ok bool
		if value, ok = g.store[key]; !ok {
			value = ""
		}
	}
	g.reply(w, map[string]any{"data": value})
}

func (g *guestbook) handleSet(w http.ResponseWriter, r *http.Request) {
	key, value := r.URL.Query().Get("key"), r.URL.Query().Get("value")
	g.log.Printf("GET /set?key=%s&value=%s", key, value)
	if key == "" {
		http.Error(w, "cannot set with empty key.", http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	g.store[key] = value
	replicas := slices.Clone(g.replicas)
	g.mu.Unlock()
	for _, replica := range replicas {
		if _, err := g.dialHTTP(r.Context(), "set?"+query(key, value), net.JoinHostPort(replica, g.backendPort)); err != nil {
			http.Error(w, fmt.Sprintf("encountered error while propagating to replica '%s': %v", replica, err), http.StatusExpectationFailed)
			return
		}
	}
	g.reply(w, map[string]any{"message": "Updated"})
}

// handleGuestbook is the front end: it writes to the primary and reads from a replica.
func (g *guestbook) handleGuestbook(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	cmd, key, value := strings.ToLower(q.Get("cmd")), q.Get("key"), q.Get("value")
	g.log.Printf("GET /guestbook?cmd=%s&key=%s&value=%s", cmd, key, value)
	backend := map[string]string{"get": "agnhost-replica", "set": "agnhost-primary"}[cmd]
	switch {
	case backend == "":
		http.Error(w, fmt.Sprintf("unsupported cmd: '%s'", cmd), http.StatusBadRequest)
		return
	case cmd == "set" && key == "":
		http.Error(w, "cannot set with empty key.", http.StatusBadRequest)
		return
	}
	addr := net.JoinHostPort(backend, g.backendPort)
	if _, err := g.resolve(r.Context(), addr); err != nil {
		http.Error(w, fmt.Sprintf("host and/or port param are invalid. %v", err), http.StatusBadRequest)
		return
	}
	response, err := g.dialHTTP(r.Context(), cmd+"?"+query(key, value), addr)
	if err != nil {
		http.Error(w, fmt.Sprintf("encountered error: %v", err), http.StatusExpectationFailed)
		return
	}
	fmt.Fprint(w, response)
}

func query(key, value string) string {
	return url.Values{"key": {key}, "value": {value}}.Encode()
}

func (g *guestbook) reply(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, fmt.Sprintf("response could not be serialized. %v", err), http.StatusExpectationFailed)
		return
	}
	w.Write(data)
}
