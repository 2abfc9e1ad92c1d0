package otelcollector

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// kafkaScraper is the receiver kafkametrics.
type kafkaScraper struct {
	c    *collector
	id   string
	conf *kafkaReceiver
	next consumer
}

// run asks the brokers now and then until ctx ends.
func (k *kafkaScraper) run(ctx context.Context) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(k.conf.Brokers...), kgo.ClientID("otel-collector"), kgo.DisableClientMetrics(),
		kgo.RetryTimeout(5*time.Second), kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return k.c.env.Net.DialContext(ctx, network, addr)
		}))
	if err != nil {
		k.c.log("error", "Error scraping metrics", "otelcol.component.id", k.id, "error", err.Error())
		return
	}
	defer client.Close()
	t := time.NewTicker(k.conf.Interval)
	defer t.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, 15*time.Second)
		b, err := k.scrape(within, kadm.NewClient(client))
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			k.c.warnSometimes("Error scraping metrics", "otelcol.component.id", k.id, "error", err.Error())
		default:
			_ = k.next.consume(ctx, b) // Those after count what they drop.
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// gauge gathers the points of a metric.
type gauge struct {
	name   string
	points []*metricspb.NumberDataPoint
	at     uint64
}

func (g *gauge) add(v int64, labels ...string) {
	p := &metricspb.NumberDataPoint{TimeUnixNano: g.at, Value: &metricspb.NumberDataPoint_AsInt{AsInt: v}}
	for i := 0; i+1 < len(labels); i += 2 {
		p.Attributes = append(p.Attributes, attribute(labels[i], labels[i+1]))
	}
	g.points = append(g.points, p)
}

func (k *kafkaScraper) scrape(ctx context.Context, admin *kadm.Client) (batch, error) {
	lags, err := admin.Lag(ctx)
	if err != nil {
		return batch{}, err
	}
	ends, err := admin.ListEndOffsets(ctx)
	if err != nil {
		return batch{}, err
	}
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return batch{}, err
	}
	now := uint64(time.Now().UnixNano())
	all := map[string]*gauge{}
	of := func(name string) *gauge {
		if all[name] == nil {
			all[name] = &gauge{name: name, at: now}
		}
		return all[name]
	}
	of("kafka.brokers").add(int64(len(brokers)))
	for topic, parts := range ends {
		of("kafka.topic.partitions").add(int64(len(parts)), "topic", topic)
		for p, end := range parts {
			of("kafka.partition.current_offset").add(end.Offset, "topic", topic, "partition", strconv.Itoa(int(p)))
		}
	}
	for _, g := range lags {
		of("kafka.consumer_group.members").add(int64(len(g.Members)), "group", g.Group)
		for _, l := range g.Lag.Sorted() {
			labels := []string{"group", g.Group, "topic", l.Topic, "partition", strconv.Itoa(int(l.Partition))}
			if l.Lag >= 0 {
				of("kafka.consumer_group.lag").add(l.Lag, labels...)
			}
			if l.Commit.At >= 0 {
				of("kafka.consumer_group.offset").add(l.Commit.At, labels...)
			}
		}
	}
	var metrics []*metricspb.Metric
	for _, g := range all {
		metrics = append(metrics, &metricspb.Metric{
			Name: g.name, Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: g.points}},
		})
	}
	return batch{metrics: []*metricspb.ResourceMetrics{{ScopeMetrics: []*metricspb.ScopeMetrics{{
		Scope: &commonpb.InstrumentationScope{Name: "kafkametricsreceiver"}, Metrics: metrics,
	}}}}}, nil
}
