package otelcollector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/image/internal/meter"
	"github.com/aiopslab/aiopslab/kit"
)

// maxConns is how many connections each port takes.
const maxConns = 500

// collector is what runs.
type collector struct {
	env     *kit.Env
	conf    *config
	meter   *meter.Meter
	holder  *kit.Holder
	started time.Time

	inbound   map[string]*inbound
	senders   map[string]*sender
	scrapes   map[string]*scraped
	batchers  []*batcher
	connected map[string]consumer // connectors, as exporters
	runs      []func(context.Context)

	logMu sync.Mutex
	last  map[string]time.Time // of warnings
}

// Main is the collector.
func Main(ctx context.Context, env *kit.Env) error {
	file, err := fileOf(env)
	if err != nil {
		fmt.Fprintf(env.Stderr, "Error: %v\n", err)
		return kit.Exit(1)
	}
	if file == "" {
		fmt.Fprintf(env.Stdout, "otelcol-contrib version %s\n", Version)
		return nil
	}
	fail := func(err error) error {
		fmt.Fprintf(env.Stderr, "Error: failed to get config: %v\n", err)
		fmt.Fprintf(env.Stderr, "%s collector server run finished with error: failed to get config: %v\n",
			time.Now().UTC().Format("2006/01/02 15:04:05"), strings.ReplaceAll(err.Error(), "\n", "; "))
		return kit.Exit(1)
	}
	data, err := env.ReadFile(file)
	if err != nil {
		return fail(fmt.Errorf("cannot retrieve the configuration: %w", err))
	}
	conf, err := parseConfig(env, data)
	if err != nil {
		return fail(err)
	}
	c := &collector{
		env: env, conf: conf, meter: meter.New(env.CPU), holder: kit.NewHolder(env), started: env.Since(),
		inbound: map[string]*inbound{}, senders: map[string]*sender{}, scrapes: map[string]*scraped{},
		connected: map[string]consumer{}, last: map[string]time.Time{},
	}
	defer c.holder.Release()
	return c.run(ctx)
}

// fileOf is the configuration that the command line names; nothing if it asks for the version.
func fileOf(env *kit.Env) (file string, err error) {
	for i := 1; i < len(env.Args); i++ {
		name, value, given := strings.Cut(env.Args[i], "=")
		switch {
		case name == "--version" || name == "-v":
			return "", nil
		case name != "--config":
			return "", fmt.Errorf("unknown flag: %s", name)
		case file != "":
			return "", errors.New("several --config are not merged here; write them into one")
		case !given && i+1 < len(env.Args):
			i++
			value = env.Args[i]
		}
		file = strings.TrimPrefix(value, "file:")
	}
	if file == "" {
		return "", errors.New("at least one config flag must be provided")
	}
	return file, nil
}

// log writes a line as the collector's logger does. The fields are names and values by turns.
func (c *collector) log(level, message string, fields ...any) {
	list := map[string]any{}
	for i := 0; i+1 < len(fields); i += 2 {
		list[fmt.Sprint(fields[i])] = fields[i+1]
	}
	data, _ := json.Marshal(list) // They are texts and numbers.
	c.logMu.Lock()
	defer c.logMu.Unlock()
	fmt.Fprintf(c.env.Stderr, "%s\t%s\t%s\t%s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), level, message,
		data)
}

// warnEvery is how often the same is told.
const warnEvery = 10 * time.Second

// warnSometimes warns of what may happen very often.
func (c *collector) warnSometimes(message string, fields ...any) {
	c.logMu.Lock()
	known := time.Since(c.last[message]) < warnEvery
	if !known {
		c.last[message] = time.Now()
	}
	c.logMu.Unlock()
	if !known {
		c.log("warn", message, fields...)
	}
}

// run builds what the configuration says, and serves.
func (c *collector) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	c.log("info", "Starting otelcol-contrib...", "Version", Version, "NumCPU", c.env.CPU.Info().Cores)
	if err := c.build(); err != nil {
		return fmt.Errorf("cannot build pipelines: %w", err)
	}
	if err := c.listen(ctx, &wg); err != nil {
		fmt.Fprintf(c.env.Stderr, "Error: cannot start pipelines: %v\n", err)
		return kit.Exit(1)
	}
	for _, s := range c.senders {
		c.runs = append(c.runs, s.run)
	}
	for _, run := range c.runs {
		wg.Go(func() { run(ctx) })
	}
	c.log("info", "Everything is ready. Begin running and processing data.")
	<-ctx.Done()
	c.log("info", "Received signal from OS", "signal", "terminated")
	for _, b := range c.batchers {
		b.flush(context.WithoutCancel(ctx))
	}
	c.log("info", "Shutdown complete.")
	return nil
}

// build makes the pipelines. Those of metrics come first: connectors give to them.
func (c *collector) build() error {
	names := slices.Sorted(maps.Keys(c.conf.service.Pipelines)) // "metrics" is before "traces".
	for _, name := range names {
		p := c.conf.service.Pipelines[name]
		var out fanout
		for _, id := range p.Exporters {
			e, err := c.exporter(id)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		var next consumer = out
		for _, id := range slices.Backward(p.Processors) {
			switch conf := c.conf.processors[id].(type) {
			case *memoryLimiter:
				next = newLimiter(c, conf, next)
			case *resourceProcessor:
				next = changer{conf, next}
			case *batchProcessor:
				b := &batcher{p: conf, c: c, next: next}
				c.batchers = append(c.batchers, b)
				next = b
			}
		}
		for _, id := range p.Receivers {
			c.receiver(id, strings.HasPrefix(name, "traces"), next)
		}
	}
	return nil
}

// exporter is one that there is, or a new one.
func (c *collector) exporter(id string) (consumer, error) {
	if to := c.connected[id]; to != nil {
		return to, nil
	}
	switch conf := c.conf.exporters[id].(type) {
	case *otlpExporter:
		if c.senders[id] == nil {
			s, err := newSender(c, id, conf)
			if err != nil {
				return nil, fmt.Errorf("exporter %s: %w", id, err)
			}
			c.senders[id] = s
		}
		return c.senders[id], nil
	case *prometheusExporter:
		if c.scrapes[id] == nil {
			c.scrapes[id] = newScraped(c, conf)
		}
		return c.scrapes[id], nil
	case *debugExporter:
		return printer{c, id}, nil
	}
	return nil, fmt.Errorf("connector %q is used as exporter, but not as receiver", id)
}

// receiver has a pipeline get what a receiver or a connector gives.
func (c *collector) receiver(id string, traces bool, next consumer) {
	switch conf := c.conf.receivers[id].(type) {
	case *otlpReceiver:
		in := c.inbound[id]
		if in == nil {
			in = &inbound{c: c, id: id}
			c.inbound[id] = in
		}
		if traces {
			in.traces = append(in.traces, next)
		} else {
			in.metrics = append(in.metrics, next)
		}
		return
	case *kafkaReceiver:
		c.runs = append(c.runs, (&kafkaScraper{c, id, conf, next}).run)
		return
	}
	if conf, ok := c.conf.connectors[id].(*spanmetricsConnector); ok {
		if have, ok := c.connected[id].(*spanMetrics); ok { // For another pipeline, too.
			have.next = fanout{have.next, next}
			return
		}
		s := newSpanMetrics(c, conf, next)
		c.connected[id] = s
		c.runs = append(c.runs, s.run)
	}
}

// listen opens all ports.
func (c *collector) listen(ctx context.Context, wg *sync.WaitGroup) error {
	open := func(address string, serve func(net.Listener) error, stop func()) error {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("endpoint %q: %w", address, err)
		}
		if host == "0.0.0.0" {
			host = ""
		}
		ln, err := c.env.Net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, stop)
		wg.Go(func() { _ = serve(netutil.LimitListener(ln, maxConns)) })
		return nil
	}
	web := func(address string, h http.Handler) error {
		srv := &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
			IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
		}
		return open(address, srv.Serve, func() { srv.Close() })
	}
	for _, id := range slices.Sorted(maps.Keys(c.inbound)) {
		in, conf := c.inbound[id], c.conf.receivers[id].(*otlpReceiver)
		if g := conf.Protocols.GRPC; g != nil {
			srv := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(100))
			if in.traces != nil {
				traceservice.RegisterTraceServiceServer(srv, traceServer{in: in})
			}
			if in.metrics != nil {
				metricservice.RegisterMetricsServiceServer(srv, metricServer{in: in})
			}
			address := cmp.Or(g.Endpoint, "0.0.0.0:4317")
			if err := open(address, srv.Serve, srv.Stop); err != nil {
				return err
			}
			c.log("info", "Starting GRPC server", "otelcol.component.id", id, "endpoint", address)
		}
		if h := conf.Protocols.HTTP; h != nil {
			address := cmp.Or(h.Endpoint, "0.0.0.0:4318")
			if err := web(address, in.routes()); err != nil {
				return err
			}
			c.log("info", "Starting HTTP server", "otelcol.component.id", id, "endpoint", address)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.scrapes)) {
		if err := web(c.scrapes[id].conf.Endpoint, c.scrapes[id]); err != nil {
			return err
		}
	}
	for _, id := range c.conf.service.Extensions {
		e := c.conf.extensions[id].(*healthExtension)
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+cmp.Or(e.Path, "/"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"status":"Server available","upSince":%q,"uptime":%q}`, c.started.Format(time.RFC3339Nano),
				time.Since(c.started).String())
		})
		if err := web(cmp.Or(e.Endpoint, "0.0.0.0:13133"), mux); err != nil {
			return err
		}
	}
	if c.conf.service.Telemetry.Metrics.Level == "none" {
		return nil
	}
	return web(c.ownAddress(), http.HandlerFunc(c.ownMetrics))
}

// ownAddress is where the collector tells of itself.
func (c *collector) ownAddress() string {
	m := c.conf.service.Telemetry.Metrics
	for _, r := range m.Readers {
		if p := r.Pull.Exporter.Prometheus; p.Port > 0 {
			return net.JoinHostPort(p.Host, fmt.Sprint(p.Port))
		}
	}
	return cmp.Or(m.Address, "0.0.0.0:8888")
}

// ownMetrics are the collector's own.
func (c *collector) ownMetrics(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var b strings.Builder
	line := func(name string, v int64, labels string) { fmt.Fprintf(&b, "%s{%s} %d\n", name, labels, v) }
	things := []string{"spans", "metric_points"}
	for k, what := range things {
		for _, m := range []string{"accepted", "refused"} {
			name := "otelcol_receiver_" + m + "_" + what + "_total"
			fmt.Fprintf(&b, "# TYPE %s counter\n", name)
			for _, id := range slices.Sorted(maps.Keys(c.inbound)) {
				for way, transport := range []string{"grpc", "http"} {
					v := &c.inbound[id].accepted[way][k]
					if m == "refused" {
						v = &c.inbound[id].refused[way][k]
					}
					line(name, v.Load(), fmt.Sprintf("receiver=%q,transport=%q", id, transport))
				}
			}
		}
		for _, m := range []string{"sent", "send_failed", "enqueue_failed"} {
			name := "otelcol_exporter_" + m + "_" + what + "_total"
			fmt.Fprintf(&b, "# TYPE %s counter\n", name)
			for _, id := range slices.Sorted(maps.Keys(c.senders)) {
				s := c.senders[id]
				v := map[string]int64{
					"sent": s.sent[k].Load(), "send_failed": s.failed[k].Load(), "enqueue_failed": s.dropped[k].Load(),
				}[m]
				line(name, v, fmt.Sprintf("exporter=%q", id))
			}
		}
	}
	b.WriteString("# TYPE otelcol_exporter_queue_size gauge\n# TYPE otelcol_exporter_queue_capacity gauge\n")
	for _, id := range slices.Sorted(maps.Keys(c.senders)) {
		line("otelcol_exporter_queue_size", int64(c.senders[id].waiting()), fmt.Sprintf("exporter=%q", id))
		line("otelcol_exporter_queue_capacity", int64(c.senders[id].limit), fmt.Sprintf("exporter=%q", id))
	}
	b.WriteString("# TYPE otelcol_exporter_prometheus_dropped_metric_points_total counter\n")
	for _, id := range slices.Sorted(maps.Keys(c.scrapes)) {
		c.scrapes[id].mu.Lock()
		line("otelcol_exporter_prometheus_dropped_metric_points_total", c.scrapes[id].dropped,
			fmt.Sprintf("exporter=%q", id))
		c.scrapes[id].mu.Unlock()
	}
	fmt.Fprintf(&b, "# TYPE otelcol_process_uptime_seconds_total counter\notelcol_process_uptime_seconds_total %d\n",
		int64(time.Since(c.started).Seconds()))
	_, _ = io.WriteString(w, b.String())
}
