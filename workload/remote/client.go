package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aiopslab/aiopslab/workload"
)

const (
	bearer = "Bearer "
	// maxAnswer is how many bytes an answer may have: a snapshot of many operations is some ten thousand.
	maxAnswer = 8 << 20
)

// Client asks a load that runs somewhere else. Its methods are safe for concurrent use; each blocks until there is an
// answer or ctx ends, and may be called again.
type Client struct {
	http  http.Client
	token string
}

// NewClient returns a client for a load that can be reached by dial.
func NewClient(dial func(ctx context.Context) (net.Conn, error), token string) *Client {
	return &Client{token: token, http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Snapshot is what users got so far.
func (c *Client) Snapshot(ctx context.Context) (*workload.Snapshot, error) {
	s := &workload.Snapshot{}
	return s, c.ask(ctx, http.MethodGet, "/snapshot", nil, s)
}

// Begin lets the arrivals of a load that is held begin.
func (c *Client) Begin(ctx context.Context) error {
	return c.ask(ctx, http.MethodPost, "/begin", nil, nil)
}

// End ends the load: no new requests. It does not wait for the last answers.
func (c *Client) End(ctx context.Context) error { return c.ask(ctx, http.MethodPost, "/end", nil, nil) }

// Stop ends the load, waits for the last answers, and returns what its users got.
func (c *Client) Stop(ctx context.Context) (*workload.Snapshot, error) {
	s := &workload.Snapshot{}
	return s, c.ask(ctx, http.MethodPost, "/stop", nil, s)
}

// Surge sends another load beside the first one, to the same place, and returns when it is over. If ctx ends before,
// so does the surge.
func (c *Client) Surge(ctx context.Context, spec workload.Spec) error {
	data, err := Order{Spec: spec}.Pack()
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, "/surge", data, nil)
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://load"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", bearer+c.token)
	if body == nil {
		req.Header["Idempotency-Key"] = nil // It is not sent, but what met a connection that was closed is sent again.
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(data)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
