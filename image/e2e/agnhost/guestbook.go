package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

const (
	joinTimeout = 15 * time.Second // for a replica to find its primary
	joinRetry   = time.Second
)

// The front end knows the other parts of the guestbook by the names of their services, which the
// suite's manifests give them.
const primaryService, replicaService = "agnhost-primary", "agnhost-replica"

// guestbook is all parts of an application at once: the primary and the replicas of a small store,
// which serve /get, /set and /register, and the front end, which serves /guestbook.
type guestbook struct {
	*program
	port, backendPort, primary string

	mu       sync.Mutex
	entries  map[string]string
	replicas []string // addresses
}

func (p *program) newGuestbook() *cobra.Command {
	g := &guestbook{program: p, entries: map[string]string{}}
	c := command("guestbook", "Be the front end, the primary or a replica of a guestbook", g.run)
	c.Flags().StringVar(&g.port, "http-port", "80", "port to serve at")
	c.Flags().StringVar(&g.backendPort, "backend-port", "6379", "port at which primary and replicas serve")
	c.Flags().StringVar(&g.primary, "replicaof", "", "host of the primary; makes this a replica")
	return c
}

func (g *guestbook) run(ctx context.Context) error {
	mux := http.NewServeMux()
	for path, handle := range map[string]func(context.Context, url.Values) (any, error){
		"/guestbook": g.relay, "/get": g.get, "/set": g.set, "/register": g.register,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			g.log.Printf("%s %s", r.Method, r.URL.RequestURI())
			result, err := handle(r.Context(), r.URL.Query())
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			a := document(result)
			io.WriteString(w, a.body)
		})
	}
	parts := []part{g.serveHTTP(":"+g.port, mux)}
	if g.primary != "" {
		parts = append(parts, once(g.join))
	}
	return together(ctx, parts...)
}

// relay is the front end: what is written goes to the primary, what is read comes from a replica.
func (g *guestbook) relay(ctx context.Context, q url.Values) (any, error) {
	verb, host := q.Get("cmd"), ""
	switch verb {
	case "get":
		host = replicaService
	case "set":
		host = primaryService
	default:
		return nil, fmt.Errorf("cmd=%s: a guestbook can get and set", verb)
	}
	q.Del("cmd")
	body, err := g.askHTTP(ctx, net.JoinHostPort(host, g.backendPort), verb+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	if !json.Valid([]byte(body)) { // It says what is wrong, in words.
		return nil, fmt.Errorf("%s: %s", host, body)
	}
	return json.RawMessage(body), nil
}

// get returns an entry, which is empty if nobody has set it, or all entries if there is no key.
func (g *guestbook) get(_ context.Context, q url.Values) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if key := q.Get("key"); key != "" {
		return map[string]string{"data": g.entries[key]}, nil
	}
	return map[string]any{"data": maps.Clone(g.entries)}, nil
}

// set writes an entry here and at every replica.
func (g *guestbook) set(ctx context.Context, q url.Values) (any, error) {
	key := q.Get("key")
	if key == "" {
		return nil, fmt.Errorf("an entry needs a key=")
	}
	g.mu.Lock()
	g.entries[key] = q.Get("value")
	replicas := slices.Clone(g.replicas)
	g.mu.Unlock()
	for _, replica := range replicas {
		if _, err := g.askHTTP(ctx, net.JoinHostPort(replica, g.backendPort), "set?"+q.Encode()); err != nil {
			return nil, fmt.Errorf("replica %s does not have it: %w", replica, err)
		}
	}
	return map[string]string{"message": "Updated"}, nil // The suite compares this.
}

// register takes on a replica and gives it all entries.
func (g *guestbook) register(ctx context.Context, q url.Values) (any, error) {
	g.mu.Lock()
	g.replicas = append(g.replicas, q.Get("host"))
	g.mu.Unlock()
	return g.get(ctx, nil)
}

// join makes a replica of this program. The primary may start later, so it asks again for a while.
func (g *guestbook) join(ctx context.Context) error {
	limit := time.Now().Add(joinTimeout)
	for {
		err := g.askToJoin(ctx)
		if err == nil {
			g.log.Printf("joined %s", g.primary)
			return nil
		}
		if time.Now().After(limit) {
			return g.fatalf("cannot join %s: %v", g.primary, err)
		}
		if err := sleep(ctx, joinRetry); err != nil {
			return err
		}
	}
}

func (g *guestbook) askToJoin(ctx context.Context) error {
	primary := net.JoinHostPort(g.primary, g.backendPort)
	// A connection's own end is an address at which the other side can reach this one.
	conn, err := g.env.Net.DialContext(ctx, "udp", primary)
	if err != nil {
		return err
	}
	own, _, err := net.SplitHostPort(conn.LocalAddr().String())
	conn.Close()
	if err != nil {
		return err
	}
	body, err := g.askHTTP(ctx, primary, "register?"+url.Values{"host": {own}}.Encode())
	if err != nil {
		return err
	}
	var all struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		return fmt.Errorf("%s does not answer as a primary: %w", primary, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.Copy(g.entries, all.Data)
	return nil
}
