package consul

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	defaultCheckTimeout = 10 * time.Second
	minForgetAfter      = time.Minute // Consul's own lower bound of DeregisterCriticalServiceAfter
)

// A probe is a check the agent makes itself.
type probe struct {
	tcp, http, method string
	interval, timeout time.Duration
	ttl               time.Duration // instead of a probe, how long the service may be silent
	forget            time.Duration // how long it may be critical; 0 is for ever
}

// checker makes the checks of the registered services.
type checker struct {
	env   *kit.Env
	state *state
	log   func(level, format string, args ...any)

	mu      sync.Mutex
	running map[string]*running // by check ID
	done    sync.WaitGroup
}

type running struct {
	probe  probe
	cancel context.CancelFunc
	beat   chan struct{} // a TTL check was refreshed
}

// start makes a check until it is stopped or ctx ends. The same check again changes nothing.
func (c *checker) start(ctx context.Context, id, service string, p probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[id]; r != nil {
		if r.probe == p {
			return
		}
		r.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{probe: p, cancel: cancel, beat: make(chan struct{}, 1)}
	c.running[id] = r
	c.done.Go(func() { c.run(ctx, id, service, r) })
}

// stop ends a check.
func (c *checker) stop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[id]; r != nil {
		r.cancel()
		delete(c.running, id)
	}
}

// refresh tells a TTL check that its service lives.
func (c *checker) refresh(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[id]; r != nil {
		select {
		case r.beat <- struct{}{}:
		default:
		}
	}
}

func (c *checker) run(ctx context.Context, id, service string, r *running) {
	period := r.probe.interval
	if r.probe.ttl > 0 {
		period = r.probe.ttl
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	var since time.Time // when it became critical
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.beat:
			ticker.Reset(period)
			since = time.Time{}
			continue
		case <-ticker.C:
		}
		status, output := critical, "TTL expired"
		if r.probe.ttl == 0 {
			status, output = c.probe(ctx, r.probe)
		}
		if ctx.Err() != nil || !c.state.setCheck(id, status, output) {
			return
		}
		switch {
		case status != critical:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			c.log("WARN", "agent: Check is now critical: check=%s", id)
		case r.probe.forget > 0 && time.Since(since) >= r.probe.forget:
			c.log("INFO", "agent: Deregistered service: service=%s", service)
			c.state.deregister(service)
			c.stop(id)
			return
		}
	}
}

// probe asks the service once.
func (c *checker) probe(ctx context.Context, p probe) (status, output string) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if p.tcp != "" {
		conn, err := c.env.Net.DialContext(ctx, "tcp", p.tcp)
		if err != nil {
			return critical, err.Error()
		}
		conn.Close()
		return passing, fmt.Sprintf("TCP connect %s: Success", p.tcp)
	}
	req, err := http.NewRequestWithContext(ctx, p.method, p.http, nil)
	if err != nil {
		return critical, err.Error()
	}
	transport := c.env.HTTPTransport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return critical, err.Error()
	}
	resp.Body.Close()
	output = fmt.Sprintf("HTTP %s %s: %s", p.method, p.http, resp.Status)
	switch {
	case resp.StatusCode < 300:
		return passing, output
	case resp.StatusCode == http.StatusTooManyRequests:
		return warning, output
	}
	return critical, output
}
