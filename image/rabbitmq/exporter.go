package rabbitmq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// exporterImage is kbudde/rabbitmq-exporter: what the management API tells, as metrics for Prometheus. From 1.0 on the
// original has another port.
func exporterImage() kit.Image {
	return kit.Image{
		Names: []string{"kbudde/rabbitmq-exporter"}, Tags: `v?0\.\d{1,2}(\.\d{1,2})?`,
		Entrypoint: []string{"/rabbitmq_exporter"}, User: "65532:65532",
		Programs: map[string]kit.Program{"/rabbitmq_exporter": Exporter},
		Memory:   8 << 20, Size: 13 << 20,
	}
}

const (
	exporterPort = "9090"
	scrapeTime   = 5 * time.Second
	maxTold      = 4 << 20
)

// Exporter is the program: RABBIT_URL, RABBIT_USER and RABBIT_PASSWORD say whom it asks, and PUBLISH_PORT where it is
// asked.
func Exporter(ctx context.Context, env *kit.Env) error {
	transport := env.HTTPTransport()
	defer transport.CloseIdleConnections()
	e := &exporter{
		client: &http.Client{Transport: transport, Timeout: scrapeTime},
		url:    strings.TrimSuffix(cmp.Or(env.Getenv("RABBIT_URL"), "http://127.0.0.1:"+managementPort), "/"),
		user:   cmp.Or(env.Getenv("RABBIT_USER"), "guest"), password: cmp.Or(env.Getenv("RABBIT_PASSWORD"), "guest"),
		log: &journal{out: env.Stdout},
	}
	port := cmp.Or(env.Getenv("PUBLISH_PORT"), exporterPort)
	ln, err := env.Net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", e)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: scrapeTime, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	e.log.info("Starting RabbitMQ exporter: PUBLISH_PORT=%s RABBIT_URL=%s", port, e.url)
	return kit.IgnoreClosed(srv.Serve(ln))
}

type exporter struct {
	client              *http.Client
	url, user, password string
	log                 *journal
}

// told is what the API tells that is exported.
type told struct {
	Objects struct {
		Connections, Channels, Exchanges, Queues, Consumers uint64
	} `json:"object_totals"`
	Totals struct {
		Messages uint64 `json:"messages"`
		Ready    uint64 `json:"messages_ready"`
		Unacked  uint64 `json:"messages_unacknowledged"`
	} `json:"queue_totals"`
}

type toldQueue struct {
	Name, VHost string
	Durable     bool
	Messages    uint64 `json:"messages"`
	Ready       uint64 `json:"messages_ready"`
	Unacked     uint64 `json:"messages_unacknowledged"`
	Consumers   uint64 `json:"consumers"`
}

// ServeHTTP asks the node anew for each scrape.
func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all told
	var queues []toldQueue
	err := errors.Join(e.ask(r.Context(), "overview", &all), e.ask(r.Context(), "queues", &queues))
	var p page
	one := func(name, help string, v uint64) {
		p.head(name, "gauge", help)
		fmt.Fprintf(&p, "%s %d\n", name, v)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err != nil {
		e.log.fail("the node cannot be asked: %v", err)
		one("rabbitmq_up", "Was the last scrape of rabbitmq successful.", 0)
		_, _ = io.WriteString(w, p.String())
		return
	}
	one("rabbitmq_up", "Was the last scrape of rabbitmq successful.", 1)
	one("rabbitmq_connections", "Number of connections.", all.Objects.Connections)
	one("rabbitmq_channels", "Number of channels.", all.Objects.Channels)
	one("rabbitmq_exchanges", "Number of exchanges.", all.Objects.Exchanges)
	one("rabbitmq_queues", "Number of queues.", all.Objects.Queues)
	one("rabbitmq_consumers", "Number of consumers.", all.Objects.Consumers)
	one("rabbitmq_queue_messages_total", "Messages of all queues.", all.Totals.Messages)
	one("rabbitmq_queue_messages_ready_total", "Messages of all queues that can be delivered.", all.Totals.Ready)
	one("rabbitmq_queue_messages_unacknowledged_total", "Delivered messages of all queues.", all.Totals.Unacked)
	for _, m := range []struct {
		name, help string
		v          func(toldQueue) uint64
	}{
		{"rabbitmq_queue_messages", "Messages of a queue.", func(q toldQueue) uint64 { return q.Messages }},
		{"rabbitmq_queue_messages_ready", "Messages to deliver.", func(q toldQueue) uint64 { return q.Ready }},
		{"rabbitmq_queue_messages_unacknowledged", "Delivered ones.", func(q toldQueue) uint64 { return q.Unacked }},
		{"rabbitmq_queue_consumers", "Consumers of a queue.", func(q toldQueue) uint64 { return q.Consumers }},
	} {
		p.head(m.name, "gauge", m.help)
		for _, q := range queues {
			fmt.Fprintf(&p, "%s{durable=\"%t\",queue=%q,vhost=%q} %d\n", m.name, q.Durable, q.Name, q.VHost, m.v(q))
		}
	}
	_, _ = io.WriteString(w, p.String())
}

// ask reads one page of the API.
func (e *exporter) ask(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/api/"+path, nil)
	if err != nil {
		return err
	}
	req.SetBasicAuth(e.user, e.password)
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/api/%s: %s", path, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxTold)).Decode(into)
}
