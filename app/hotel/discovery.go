package hotel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	callTimeout   = 5 * time.Second       // of one service's call to another
	registerEvery = 2 * time.Second       // Consul forgets when it restarts, so services repeat themselves
	watchWait     = 30 * time.Second      // how long Consul may hold a query when nothing changes
	firstRetry    = 50 * time.Millisecond // while Consul is away, doubled each time
	lastRetry     = time.Second
	checkEvery    = "5s"
	forgetAfter   = "1m"
)

// consul is a client of Consul's HTTP API.
type consul struct {
	s    *service.Service
	base string
	http *http.Client
}

func newConsul(s *service.Service, c config) *consul {
	s.Log.Info(fmt.Sprintf("Initializing consul agent [host: %v]...", c["consulAddress"]))
	return &consul{
		s, "http://" + c["consulAddress"],
		&http.Client{Transport: s.Env.HTTPTransport(), Timeout: watchWait + callTimeout},
	}
}

// register tells Consul where the service is, again and again until ctx ends, and then that it is
// gone.
func (c *consul) register(ctx context.Context, name, port string) {
	id := name + "-" + c.s.Env.Hostname
	n, _ := strconv.Atoi(port)
	addr := "127.0.0.1" // of a machine without a network
	if addrs := c.s.Env.Net.Addrs(); len(addrs) > 0 {
		addr = addrs[0].String()
	}
	body, _ := json.Marshal(map[string]any{
		"ID": id, "Name": name, "Address": addr, "Port": n,
		"Check": map[string]string{
			"Name": "tcp " + name, "TCP": addr + ":" + port, "Interval": checkEvery,
			"DeregisterCriticalServiceAfter": forgetAfter, "Status": "passing",
		},
	})
	failing, retry := false, firstRetry
	for {
		wait := registerEvery
		if _, err := c.call(ctx, http.MethodPut, "/v1/agent/service/register", body, nil); err != nil &&
			ctx.Err() == nil {
			wait, retry = retry, min(2*retry, lastRetry)
			if !failing {
				c.s.Log.Error("Failed to register with consul", slog.String("service", name), slog.Any("error", err))
			}
			failing = true
		} else if failing {
			c.s.Log.Info("Registered with consul", slog.String("service", name))
			failing, retry = false, firstRetry
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_, _ = c.call(end, http.MethodPut, "/v1/agent/service/deregister/"+url.PathEscape(id), nil, nil)
			c.http.CloseIdleConnections()
			return
		}
	}
}

// lookup returns a service's healthy addresses once they are newer than index.
func (c *consul) lookup(ctx context.Context, name string, index string) (addrs []string, next string, err error) {
	var entries []struct {
		Service struct {
			Address string
			Port    int
		}
	}
	q := url.Values{"passing": {"true"}, "index": {index}, "wait": {watchWait.String()}}
	h, err := c.call(ctx, http.MethodGet, "/v1/health/service/"+url.PathEscape(name)+"?"+q.Encode(), nil, &entries)
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		addrs = append(addrs, e.Service.Address+":"+strconv.Itoa(e.Service.Port))
	}
	return addrs, h.Get("X-Consul-Index"), nil
}

func (c *consul) call(ctx context.Context, method, path string, body []byte, result any) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		//lint:ignore ST1005 Consul's own words.
		return nil, fmt.Errorf("Unexpected response code: %d (%s)", resp.StatusCode, bytes.TrimSpace(b))
	}
	if result != nil {
		err = json.Unmarshal(b, result)
	}
	return resp.Header, err
}

// dial connects to a service by its name in Consul.
func (c *consul) dial(name string) (*grpc.ClientConn, error) {
	return c.s.DialGRPC("consul:///"+name, callTimeout, grpc.WithResolvers(c))
}

// Scheme and Build make consul a resolver of gRPC targets.
func (c *consul) Scheme() string { return "consul" }

// Build starts to watch a service.
func (c *consul) Build(target resolver.Target, cc resolver.ClientConn,
	_ resolver.BuildOptions,
) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{cancel: cancel}
	w.done.Go(func() { c.watch(ctx, target.Endpoint(), cc) })
	return w, nil
}

// watch keeps a connection's addresses up to date. While Consul is away the last ones stay.
func (c *consul) watch(ctx context.Context, name string, cc resolver.ClientConn) {
	index, known, retry := "0", false, firstRetry
	for ctx.Err() == nil {
		addrs, next, err := c.lookup(ctx, name, index)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !known {
				cc.ReportError(fmt.Errorf("look up %s in consul: %w", name, err))
			}
			index = "0"
		case len(addrs) == 0:
			index = next
			cc.ReportError(fmt.Errorf("consul knows no healthy instance of %s", name))
			if known {
				_ = cc.UpdateState(resolver.State{})
			}
			known = false
		default:
			index, known, retry = next, true, firstRetry
			var state resolver.State
			for _, a := range addrs {
				state.Addresses = append(state.Addresses, resolver.Address{Addr: a})
			}
			_ = cc.UpdateState(state)
			continue
		}
		if err == nil {
			retry = firstRetry
			continue // The next query blocks until something changes.
		}
		select {
		case <-time.After(retry):
			retry = min(2*retry, lastRetry)
		case <-ctx.Done():
		}
	}
}

type watch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (w *watch) ResolveNow(resolver.ResolveNowOptions) {}

func (w *watch) Close() {
	w.cancel()
	w.done.Wait()
}
