package prometheus

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"

	"github.com/aiopslab/aiopslab/kit"
)

// options are the command line.
type options struct {
	configFile  string
	listen      string
	externalURL string
	lifecycle   bool

	retention     model.Duration
	retentionSize int64
	minBlock      model.Duration
	maxBlock      model.Duration

	lookback   model.Duration
	timeout    model.Duration
	maxSamples int

	outageTolerance model.Duration
	gracePeriod     model.Duration
	resendDelay     model.Duration

	logLevel  *promslog.Level
	logFormat *promslog.Format

	external *url.URL
	all      map[string]string // as /api/v1/status/flags shows them
}

func parseFlags(env *kit.Env) (*options, error) {
	o := &options{
		retention: model.Duration(15 * 24 * time.Hour), minBlock: model.Duration(2 * time.Hour),
		lookback: model.Duration(5 * time.Minute), timeout: model.Duration(2 * time.Minute),
		outageTolerance: model.Duration(time.Hour), gracePeriod: model.Duration(10 * time.Minute),
		resendDelay: model.Duration(time.Minute), logLevel: promslog.NewLevel(), logFormat: promslog.NewFormat(),
	}
	f := flag.NewFlagSet("prometheus", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.configFile, "config.file", "prometheus.yml", "Prometheus configuration file path.")
	f.StringVar(&o.listen, "web.listen-address", "0.0.0.0:9090", "Address to listen on.")
	f.StringVar(&o.externalURL, "web.external-url", "", "The URL under which Prometheus is externally reachable.")
	f.BoolVar(&o.lifecycle, "web.enable-lifecycle", false, "Enable shutdown and reload via HTTP request.")
	f.String("web.console.templates", "consoles", "Path to the console template directory; there are no consoles.")
	f.String("web.console.libraries", "console_libraries",
		"Path to the console library directory; there are no consoles.")
	f.String("storage.tsdb.path", "data/",
		"Base path for metrics storage; metrics are kept in the container's scratch directory.")
	f.Var(&o.retention, "storage.tsdb.retention.time", "How long to retain samples in storage.")
	f.Func("storage.tsdb.retention.size", "Maximum number of bytes that can be stored for blocks.",
		func(s string) error {
			n, err := parseBytes(s)
			o.retentionSize = n
			return err
		})
	f.Var(&o.minBlock, "storage.tsdb.min-block-duration", "Minimum duration of a data block before being persisted.")
	f.Var(&o.maxBlock, "storage.tsdb.max-block-duration",
		"Maximum duration compacted blocks may span; by default a tenth of the retention.")
	f.Bool("storage.tsdb.wal-compression", true, "Compress the write-ahead log; there is none.")
	f.Bool("storage.tsdb.no-lockfile", false, "Do not create a lockfile; there is none.")
	f.Var(&o.lookback, "query.lookback-delta",
		"The maximum lookback duration for retrieving metrics during expression evaluations.")
	f.Var(&o.timeout, "query.timeout", "Maximum time a query may take before being aborted.")
	f.IntVar(&o.maxSamples, "query.max-samples", 50_000_000,
		"Maximum number of samples a single query can load into memory.")
	f.Var(&o.outageTolerance, "rules.alert.for-outage-tolerance",
		"Max time to tolerate prometheus outage for restoring for state of alert.")
	f.Var(&o.gracePeriod, "rules.alert.for-grace-period", "Minimum duration between alert and restored for state.")
	f.Var(&o.resendDelay, "rules.alert.resend-delay", "Minimum amount of time to wait before resending an alert.")
	f.Var(o.logLevel, "log.level", "Only log messages with the given severity or above.")
	f.Var(o.logFormat, "log.format", "Output format of log messages.")

	err := f.Parse(env.Args[1:])
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected %s", f.Arg(0))
	}
	if err == nil {
		err = o.complete(env)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "Error parsing command line arguments: %v\nprometheus: error: %v\n", err, err)
		return nil, kit.Exit(2)
	}
	o.all = map[string]string{}
	f.VisitAll(func(fl *flag.Flag) { o.all[fl.Name] = fl.Value.String() })
	return o, nil
}

// complete fills in what other flags imply.
func (o *options) complete(env *kit.Env) error {
	if o.maxBlock == 0 {
		o.maxBlock = max(o.retention/10, o.minBlock)
	}
	if o.externalURL == "" {
		_, port, err := net.SplitHostPort(o.listen)
		if err != nil {
			return err
		}
		o.externalURL = "http://" + net.JoinHostPort(env.Hostname, port) + "/"
	}
	var err error
	o.external, err = url.Parse(o.externalURL)
	return err
}

// parseBytes reads a size such as 512MB or 2GB, in powers of 1024 as Prometheus counts them.
func parseBytes(s string) (int64, error) {
	var n int64
	var unit string
	if _, err := fmt.Sscanf(s, "%d%s", &n, &unit); err != nil {
		return 0, fmt.Errorf("%q is not a size such as 512MB", s)
	}
	for i, u := range []string{"B", "KB", "MB", "GB", "TB", "PB", "EB"} {
		if u == unit {
			return n << (10 * i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a size such as 512MB", s)
}
