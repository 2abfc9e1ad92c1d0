package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// External is telemetry that somebody has already, by its URL. What is empty is the lab's own.
type External struct {
	Prometheus string `json:"prometheus,omitempty"` // its HTTP API is below this
	Jaeger     string `json:"jaeger,omitempty"`     // its query API is below this
	Tempo      string `json:"tempo,omitempty"`      // its HTTP API is below this; instead of a Jaeger
	Loki       string `json:"loki,omitempty"`       // its HTTP API is below this
}

// Of traces, one service's are asked for in so many requests at most, and of each come so many, the newest.
const (
	externalRequests = 20
	externalTraces   = 200
)

// externalTimeout is how long one request to it may take.
const externalTimeout = 30 * time.Second

// Check says which URL is none, or one too many.
func (e External) Check() error {
	for _, x := range []struct{ name, address string }{
		{"prometheus", e.Prometheus}, {"jaeger", e.Jaeger}, {"tempo", e.Tempo}, {"loki", e.Loki},
	} {
		if x.address == "" {
			continue
		}
		u, err := url.Parse(x.address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%s: %q is no URL such as http://localhost:9090", x.name, x.address)
		}
	}
	if e.Jaeger != "" && e.Tempo != "" {
		return errors.New("jaeger and tempo: traces come from one of them")
	}
	return nil
}

// maxExternal is how long an answer may be, in bytes.
const maxExternal = 64 << 20

// errNotFound is that there is no such thing there.
var errNotFound = errors.New("not found")

// askExternal gets JSON from a URL.
func askExternal(ctx context.Context, client *http.Client, address string, v url.Values, into any) error {
	if len(v) > 0 {
		address += "?" + v.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxExternal))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusNotFound:
		return errNotFound
	case res.StatusCode != http.StatusOK:
		why, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return fmt.Errorf("%s: %.200s", res.Status, why)
	}
	return json.Unmarshal(body, into)
}

// Use has the observer read telemetry elsewhere from now on. Without a Loki, logs come from the cluster's API.
func (o *Observer) Use(e External) error {
	if err := e.Check(); err != nil {
		return err
	}
	client := &http.Client{Timeout: externalTimeout}
	if e.Prometheus != "" {
		p, err := api.NewClient(api.Config{Address: e.Prometheus, Client: client})
		if err != nil {
			return err
		}
		o.prometheus = promv1.NewAPI(p)
	}
	if e.Jaeger != "" {
		o.external = JaegerAt(client, e.Jaeger)
	}
	if e.Tempo != "" {
		o.external = &tempo{client, strings.TrimRight(e.Tempo, "/"), externalRequests}
	}
	if e.Loki != "" {
		o.loki = &loki{client, strings.TrimRight(e.Loki, "/")}
	}
	return nil
}
