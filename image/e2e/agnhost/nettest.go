package agnhost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
)

const maxLog = 500 // messages a nettest server remembers

// nettest finds its peers, the pods of a service, greets each and counts who greets it.
type nettest struct {
	*program
	port, peers, delayShutdown int
	service, namespace         string

	mu    sync.Mutex
	state nettestState
}

// nettestState is what /read shows.
type nettestState struct {
	Hostname             string
	Sent                 map[string]int
	Received             map[string]int
	Errors               []string
	Log                  []string
	StillContactingPeers bool
}

// greeting is what one peer posts to another.
type greeting struct{ Source, Dest string }

func (p *program) newNettest() *cobra.Command {
	n := &nettest{program: p}
	c := command("nettest", "Starts a tiny web server for checking networking connectivity", n.run)
	f := c.Flags()
	f.IntVar(&n.port, "port", 8080, "Port number to serve at.")
	f.IntVar(&n.peers, "peers", 8, "Must find at least this many peers for the test to pass.")
	f.StringVar(&n.service, "service", "nettest", "Service to find other network test pods in.")
	f.StringVar(&n.namespace, "namespace", "default", "Namespace of this pod.")
	f.IntVar(&n.delayShutdown, "delay-shutdown", 0, "Number of seconds to delay shutdown when receiving SIGTERM.")
	return c
}

func (n *nettest) run(ctx context.Context) error {
	if n.service == "" {
		return n.fatal("Must provide -service flag.")
	}
	n.state = nettestState{Hostname: n.env.Hostname, StillContactingPeers: true}
	quit := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/quit", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case quit <- struct{}{}:
		default:
		}
		vanish(r)
	})
	mux.HandleFunc("/read", n.handleRead)
	mux.HandleFunc("/write", n.handleWrite)
	mux.HandleFunc("/status", n.handleStatus)
	parts := []part{
		n.serveHTTP(fmt.Sprintf(":%d", n.port), mux),
		once(n.contactOthers),
		func(ctx context.Context) error {
			select {
			case <-quit:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
	if n.delayShutdown > 0 {
		parts = append(parts, n.delayTermination(n.delayShutdown, "Sleeping %d seconds before exit ..."))
	}
	return together(ctx, parts...)
}

func (n *nettest) handleRead(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	data, err := json.MarshalIndent(&n.state, "", "\t")
	n.note(err)
	_, err = w.Write(data)
	n.note(err)
}

func (n *nettest) handleWrite(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var g greeting
	n.note(json.NewDecoder(r.Body).Decode(&g))
	if g.Source == "" {
		n.note(fmt.Errorf("%v: got request with no source", n.state.Hostname))
	} else {
		count(&n.state.Received, g.Source)
	}
	n.note(json.NewEncoder(w).Encode(struct{ Hostname string }{n.state.Hostname}))
}

// handleStatus answers with the one word tests look for.
func (n *nettest) handleStatus(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &n.state
	switch {
	case len(s.Sent) >= n.peers && len(s.Received) >= n.peers:
		fmt.Fprint(w, "pass")
	case s.StillContactingPeers:
		fmt.Fprint(w, "running")
	default:
		n.remember("Declaring failure for %s/%s with %d sent and %d received and %d peers", n.namespace, n.service, len(s.Sent), len(s.Received), n.peers)
		fmt.Fprint(w, "fail")
	}
}

func count(m *map[string]int, key string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}

// note keeps an error, if there is one. It is called with n.mu held.
func (n *nettest) note(err error) {
	if err != nil {
		n.state.Errors = append(n.state.Errors, err.Error())
	}
}

// remember keeps a message. It is called with n.mu held.
func (n *nettest) remember(format string, args ...any) {
	n.state.Log = append(n.state.Log, fmt.Sprintf(format, args...))
	if len(n.state.Log) > maxLog {
		n.state.Log = n.state.Log[1:]
	}
}

func (n *nettest) logf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remember(format, args...)
}

// contactOthers waits until there are enough peers and greets each of them several times, since
// some may start late. Large services are polled less often.
func (n *nettest) contactOthers(ctx context.Context) error {
	defer func() {
		n.mu.Lock()
		n.state.StillContactingPeers = false
		n.mu.Unlock()
	}()
	pauseTime := max(5*time.Second, time.Duration(n.peers/10)*time.Second)
	limit := max(5*time.Minute, time.Duration(n.peers)*time.Second)
	client, api, err := inClusterClient(n.env)
	if err != nil {
		return n.fatalf("Unable to create config; error: %v\n", err)
	}
	defer closeIdle(client)
	for start := time.Now(); ; {
		version, err := fetch(ctx, client, api+"/version")
		if err == nil {
			n.log.Printf("Server version: %s\n", version)
			break
		}
		n.log.Printf("Unable to get server version: %v; retrying.\n", err)
		if err := sleep(ctx, pauseTime); err != nil {
			return err
		}
		if time.Since(start) >= limit {
			return n.fatalf("Unable to contact Kubernetes: %v\n", err)
		}
	}
	for start := time.Now(); time.Since(start) < limit; {
		found := n.endpoints(ctx, client, api)
		if len(found) >= n.peers {
			break
		}
		n.logf("%v/%v has %v endpoints (%v), which is less than %v as expected. Waiting for all endpoints to come up.", n.namespace, n.service, len(found), found, n.peers)
		if err := sleep(ctx, pauseTime); err != nil {
			return err
		}
	}
	for range 15 {
		for _, peer := range n.endpoints(ctx, client, api) {
			n.logf("Attempting to contact %s", peer)
			n.greet(ctx, peer)
		}
		if err := sleep(ctx, pauseTime); err != nil {
			return err
		}
	}
	return nil
}

// endpoints returns the URLs of the service's pods.
func (n *nettest) endpoints(ctx context.Context, client *http.Client, api string) []string {
	//lint:ignore SA1019 The real image asks for this kind.
	var list corev1.Endpoints
	body, err := fetch(ctx, client, fmt.Sprintf("%s/api/v1/namespaces/%s/endpoints/%s", api, n.namespace, n.service))
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		n.logf("Unable to read the endpoints for %v/%v: %v.", n.namespace, n.service, err)
		return nil
	}
	var urls []string
	for _, subset := range list.Subsets {
		for _, a := range subset.Addresses {
			for _, port := range subset.Ports {
				urls = append(urls, "http://"+net.JoinHostPort(a.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

func (n *nettest) greet(ctx context.Context, peer string) {
	transport := n.env.HTTPTransport()
	defer transport.CloseIdleConnections()
	data, err := json.Marshal(greeting{Source: n.env.Hostname, Dest: peer})
	var req *http.Request
	if err == nil {
		req, err = http.NewRequestWithContext(ctx, "POST", peer+"/write", bytes.NewReader(data))
	}
	var resp *http.Response
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
		resp, err = (&http.Client{Transport: transport}).Do(req)
	}
	if err != nil {
		n.logf("Warning: unable to contact the endpoint %q: %v", peer, err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var answer struct{ Hostname string }
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		n.logf("Warning: unable to unmarshal response (%s) from '%v': '%v'", body, peer, err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	count(&n.state.Sent, answer.Hostname)
}
