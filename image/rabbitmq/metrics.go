package rabbitmq

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/aiopslab/aiopslab/kit/past"
)

// page collects metrics in Prometheus' format.
type page struct{ strings.Builder }

func (p *page) head(name, kind, help string) {
	fmt.Fprintf(p, "# TYPE %s %s\n# HELP %s %s\n", name, kind, name, help)
}

// metrics serves what the plugin rabbitmq_prometheus does, with a series for each queue.
func (b *broker) metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" && r.URL.Path != "/metrics/per-object" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(b.exposition()))
	})
}

func (b *broker) exposition() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var p page
	one := func(name, kind, help string, v uint64) {
		p.head(name, kind, help)
		fmt.Fprintf(&p, "%s %d\n", name, v)
	}
	p.head("rabbitmq_identity_info", "gauge", "RabbitMQ node & cluster identity info")
	fmt.Fprintf(&p, "rabbitmq_identity_info{rabbitmq_node=%q,rabbitmq_cluster=%q} 1\n", b.settings.node,
		b.settings.node)
	p.head("rabbitmq_build_info", "gauge", "RabbitMQ version")
	fmt.Fprintf(&p, "rabbitmq_build_info{rabbitmq_version=%q} 1\n", Version)
	channels := 0
	for c := range b.conns {
		channels += len(c.channels)
	}
	alarm := uint64(0)
	if b.relief != nil {
		alarm = 1
	}
	for _, m := range []struct {
		name, help string
		v          uint64
	}{
		{"rabbitmq_connections", "Connections currently open", uint64(len(b.conns))},
		{"rabbitmq_channels", "Channels currently open", uint64(channels)},
		{"rabbitmq_consumers", "Consumers currently connected", uint64(b.consumers)},
		{"rabbitmq_queues", "Queues available", uint64(len(b.queues))},
		{"rabbitmq_process_resident_memory_bytes", "Memory used in bytes", uint64(b.env.Memory.Info().Used)},
		{"rabbitmq_resident_memory_limit_bytes", "Memory high watermark in bytes", watermark},
		{"rabbitmq_alarms_memory_used_watermark", "is 1 if the memory high watermark is reached", alarm},
	} {
		one(m.name, "gauge", m.help, m.v)
	}
	c := b.counts
	for _, m := range []struct {
		name, help string
		v          past.Number
	}{
		{"rabbitmq_connections_opened_total", "Total number of connections opened", c.connOpened},
		{"rabbitmq_connections_closed_total", "Total number of connections closed or terminated", c.connClosed},
		{"rabbitmq_channels_opened_total", "Total number of channels opened", c.channelOpened},
		{"rabbitmq_channels_closed_total", "Total number of channels closed", c.channelClosed},
		{"rabbitmq_global_messages_received_total", "Total number of messages received from publishers", c.published},
		{"rabbitmq_global_messages_routed_total", "Total number of messages routed to queues", c.routed},
		{"rabbitmq_global_messages_confirmed_total", "Total number of messages confirmed to publishers", c.confirmed},
		{"rabbitmq_global_messages_unroutable_returned_total", "Messages that were returned to publishers", c.returned},
		{"rabbitmq_global_messages_unroutable_dropped_total", "Messages that went to no queue", c.unroutable},
		{"rabbitmq_global_messages_delivered_total", "Total number of messages delivered to consumers", c.delivered},
		{"rabbitmq_global_messages_redelivered_total", "Messages delivered more than once", c.redelivered},
		{"rabbitmq_global_messages_acknowledged_total", "Messages acknowledged by consumers", c.acknowledged},
		{"rabbitmq_global_messages_get_total", "Messages that were asked for", c.got},
	} {
		one(m.name, "counter", m.help, uint64(m.v))
	}
	b.queueMetrics(&p)
	return p.String()
}

// queueMetrics tells of each queue.
func (b *broker) queueMetrics(p *page) {
	for _, m := range []struct {
		name, help string
		v          func(*queue) uint64
	}{
		{"rabbitmq_queue_messages_ready", "Messages ready to be delivered", func(q *queue) uint64 {
			return uint64(q.len())
		}},
		{"rabbitmq_queue_messages_unacked", "Messages not yet acknowledged", func(q *queue) uint64 {
			return uint64(q.unacked)
		}},
		{"rabbitmq_queue_messages", "Sum of ready and unacknowledged messages", func(q *queue) uint64 {
			return uint64(q.len() + q.unacked)
		}},
		{"rabbitmq_queue_consumers", "Consumers on a queue", func(q *queue) uint64 {
			return uint64(len(q.consumers))
		}},
	} {
		p.head(m.name, "gauge", m.help)
		for _, name := range named(b.queues) {
			fmt.Fprintf(p, "%s{vhost=%q,queue=%q} %d\n", m.name, b.settings.vhost, name, m.v(b.queues[name]))
		}
	}
}
