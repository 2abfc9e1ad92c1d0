package kafka

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// scrapeTimeout is how long the broker may take to tell of itself.
const scrapeTimeout = 5 * time.Second

// watcher serves /metrics. It asks the broker as any client does, over a connection that nobody else has.
type watcher struct {
	b      *broker
	client *kgo.Client
	admin  *kadm.Client
	mu     sync.Mutex // one scrape at a time
}

func newWatcher(b *broker) (*watcher, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(string(b.inlet.addr)), kgo.ClientID("metrics"), kgo.DisableClientMetrics(),
		kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return b.inlet.dial(ctx) }),
	)
	if err != nil {
		return nil, fmt.Errorf("connect the broker to itself: %w", err)
	}
	return &watcher{b: b, client: client, admin: kadm.NewClient(client)}, nil
}

func (w *watcher) close() { w.client.Close() }

// ServeHTTP implements http.Handler.
func (w *watcher) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(out, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	text, err := w.text(ctx)
	if err != nil {
		http.Error(out, err.Error(), http.StatusServiceUnavailable)
		return
	}
	out.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = out.Write([]byte(text))
}

// page collects metrics in Prometheus' format.
type page struct{ strings.Builder }

func (p *page) head(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// value writes a sample; labels are names and values by turns.
func (p *page) value(name string, v int64, labels ...string) {
	p.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		p.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		fmt.Fprintf(p, "%s=%q", labels[i], labels[i+1])
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	fmt.Fprintf(p, " %d\n", v)
}

// text tells all there is: what the log has, and how far the groups are.
func (w *watcher) text(ctx context.Context) (string, error) {
	lags, err := w.admin.Lag(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the broker for its groups: %w", err)
	}
	var p page
	w.logs(&p)
	groups(&p, lags)
	p.head("kafka_server_brokertopicmetrics_bytesin_total", "counter", "Bytes of messages that came in.")
	p.value("kafka_server_brokertopicmetrics_bytesin_total", w.b.traffic.in.Load())
	p.head("kafka_server_brokertopicmetrics_bytesout_total", "counter", "Bytes of responses.")
	p.value("kafka_server_brokertopicmetrics_bytesout_total", w.b.traffic.out.Load())
	p.head("kafka_server_socket_connections", "gauge", "Connections of clients.")
	p.value("kafka_server_socket_connections", w.b.inlet.open.Load())
	p.head("kafka_brokers", "gauge", "Brokers of the cluster.")
	p.value("kafka_brokers", 1)
	return p.String(), nil
}

// logs tells of topics and their partitions.
func (w *watcher) logs(p *page) {
	type row struct {
		topic, partition string
		end, start, size int64
	}
	var rows []row
	in := map[string]int64{}
	names := w.b.state.names()
	for _, name := range names {
		for _, i := range w.b.cluster.PartitionInfos(name) {
			rows = append(rows, row{
				name, strconv.Itoa(int(i.Partition)), i.HighWatermark, i.LogStartOffset, i.NumBytes,
			})
			in[name] += i.HighWatermark
		}
	}
	const messages = "kafka_server_brokertopicmetrics_messagesin_total"
	p.head(messages, "counter", "Messages that came in.")
	for _, name := range names {
		p.value(messages, in[name]+w.b.before.of(name), "topic", name)
	}
	for _, m := range []struct {
		name, help string
		value      func(row) int64
	}{
		{"kafka_log_log_logendoffset", "Offset that the next message will have.", func(r row) int64 { return r.end }},
		{"kafka_log_log_logstartoffset", "Offset of the oldest message.", func(r row) int64 { return r.start }},
		{"kafka_log_log_size", "Bytes of a partition.", func(r row) int64 { return r.size }},
	} {
		p.head(m.name, "gauge", m.help)
		for _, r := range rows {
			p.value(m.name, m.value(r), "topic", r.topic, "partition", r.partition)
		}
	}
}

// groups tells of consumers.
func groups(p *page, lags kadm.DescribedGroupLags) {
	sorted := lags.Sorted()
	p.head("kafka_consumer_group_lag", "gauge", "Messages that a group has not consumed yet.")
	for _, g := range sorted {
		for _, l := range g.Lag.Sorted() {
			if l.Lag >= 0 {
				p.value("kafka_consumer_group_lag", l.Lag, "group", g.Group, "topic", l.Topic, "partition",
					strconv.Itoa(int(l.Partition)))
			}
		}
	}
	p.head("kafka_consumer_group_offset", "gauge", "Offset up to which a group has consumed.")
	for _, g := range sorted {
		for _, l := range g.Lag.Sorted() {
			if l.Commit.At >= 0 {
				p.value("kafka_consumer_group_offset", l.Commit.At, "group", g.Group, "topic", l.Topic, "partition",
					strconv.Itoa(int(l.Partition)))
			}
		}
	}
	p.head("kafka_consumer_group_members", "gauge", "Consumers of a group.")
	for _, g := range sorted {
		p.value("kafka_consumer_group_members", int64(len(g.Members)), "group", g.Group)
	}
}
