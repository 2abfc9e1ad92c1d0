package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// discoveryDelay is how long changes of targets are collected before they take effect.
	discoveryDelay = 250 * time.Millisecond
	memoryInterval = 5 * time.Second
)

// server is a running Prometheus.
type server struct {
	env  *kit.Env
	opts *options
	log  *slog.Logger
	reg  *prometheus.Registry
	// exposed is the registry, with what was counted before it.
	exposed *past.Gatherer

	db       *tsdb.DB
	data     *lived // the database, with what was before it
	client   []httpconfig.HTTPClientOption
	parser   parser.Parser
	engine   *promql.Engine
	cluster  *cluster
	targets  *discovery.Manager
	scraping *scrape.Manager
	rules    *rules.Manager

	ready   atomic.Bool
	quit    context.CancelFunc
	reloads chan chan error

	mu       sync.Mutex
	groups   map[string][]*targetgroup.Group // of targets
	config   *config.Config                  // as shown
	loadedAt time.Time
	loadedOK bool
}

// Main is the program.
func Main(ctx context.Context, env *kit.Env) error {
	opts, err := parseFlags(env)
	if err != nil {
		return err
	}
	signals := env.Notify()
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	log := promslog.New(&promslog.Config{Level: opts.logLevel, Format: opts.logFormat, Writer: env.Stderr})
	log.Info("Starting Prometheus Server", "mode", "server", "version", "(version="+Version+")")
	s := &server{
		env: env, opts: opts, log: log, reg: prometheus.NewRegistry(), quit: quit,
		reloads: make(chan chan error),
	}
	s.exposed = &past.Gatherer{Gatherer: s.reg}
	s.cluster = newCluster(ctx, env)
	cfg, err := load(env, opts.configFile, s.cluster, log)
	if err != nil {
		log.Error(fmt.Sprintf("Error loading config (--config.file=%s)", opts.configFile), "file",
			env.Path(opts.configFile), "err", err)
		return kit.Exit(2)
	}
	ln, err := env.Net.Listen("tcp", opts.listen)
	if err != nil {
		log.Error("Unable to start web listener", "err", err)
		return kit.Exit(1)
	}
	defer ln.Close()
	log.Info("Listening on", "component", "web", "address", ln.Addr().String())
	if err := s.assemble(ctx); err != nil {
		log.Error("Opening storage failed", "err", err)
		return kit.Exit(1)
	}
	defer os.RemoveAll(env.Scratch)
	env.Keep(kit.NotKept)

	var wg sync.WaitGroup
	wg.Go(func() { s.serve(ctx, ln) })
	wg.Go(func() { _ = s.targets.Run() })
	wg.Go(func() { _ = s.scraping.Run(s.relay(ctx)) })
	wg.Go(func() { meterMemory(ctx, env, s.db, memoryInterval) })
	failed := s.apply(cfg)
	if failed == nil {
		wg.Go(s.rules.Run)
		s.ready.Store(true)
		env.Recall(kit.Collector, s.recall)
		log.Info("Server is ready to receive web requests.")
		s.attend(ctx, signals)
	}
	log.Info("Stopping scrape manager...")
	quit()
	s.scraping.Stop()
	if failed == nil { // Rules that do not run yet cannot be stopped.
		s.rules.Stop()
	}
	wg.Wait()
	s.cluster.wait()
	err = s.db.Close()
	log.Info("See you next time!")
	return errors.Join(failed, err)
}

// assemble makes the parts.
func (s *server) assemble(ctx context.Context) (err error) {
	s.registerProcess()
	if s.db, err = openStorage(s.env, s.opts, s.log.With("component", "tsdb"), s.reg); err != nil {
		return err
	}
	s.data = &lived{Queryable: s.db}
	s.parser = guardedParser{parser.NewParser(parser.Options{})}
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger: s.log.With("component", "query engine"), Reg: s.reg, Parser: s.parser,
		MaxSamples: s.opts.maxSamples, Timeout: time.Duration(s.opts.timeout),
		LookbackDelta: time.Duration(s.opts.lookback), EnableAtModifier: true, EnableNegativeOffset: true,
		EnablePerStepStats:       true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Duration(s.interval()).Milliseconds() },
	})
	s.client = []httpconfig.HTTPClientOption{
		httpconfig.WithDialContextFunc(dialer(ctx, s.env.Net)),
		httpconfig.WithSecretManager(files{s.env}),
	}
	metrics := newClusterMetrics(s.reg)
	if err := metrics.Register(); err != nil {
		return err
	}
	s.targets = discovery.NewManager(ctx, s.log.With("component", "discovery manager scrape"), s.reg,
		&discovery.SDMetrics{
			RefreshManager:   discovery.NewRefreshMetrics(s.reg),
			MechanismMetrics: map[string]discovery.DiscovererMetrics{"kubernetes": metrics},
		}, discovery.Name("scrape"), discovery.Updatert(discoveryDelay))
	store := metered{s.db, s.env}
	s.scraping, err = scrape.NewManager(&scrape.Options{
		HTTPClientOptions: s.client, DiscoveryReloadInterval: model.Duration(discoveryDelay),
		DiscoveryReloadOnStartup: true,
	}, s.log.With("component", "scrape manager"), nil, store, nil, s.reg)
	if err != nil {
		return err
	}
	s.rules = rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation, ExternalURL: s.opts.external, Context: ctx,
		Appendable: store, Queryable: s.data, QueryFunc: rules.EngineQueryFunc(s.engine, s.data),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     s.log.With("component", "rule manager"), Registerer: s.reg, Parser: s.parser,
		GroupLoader:     ruleLoader{s.env, s.parser, s.log},
		OutageTolerance: time.Duration(s.opts.outageTolerance), ForGracePeriod: time.Duration(s.opts.gracePeriod),
		ResendDelay: time.Duration(s.opts.resendDelay),
		DefaultRuleQueryOffset: func() time.Duration {
			return time.Duration(s.shown().GlobalConfig.RuleQueryOffset)
		},
	})
	return nil
}

// dialer connects for as long as the program runs. HTTP clients go on to connect when nobody waits
// for it any more.
func dialer(program context.Context, network kit.Network) httpconfig.DialContextFunc {
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(program, cancel)()
		return network.DialContext(ctx, kind, address)
	}
}

// apply makes a configuration the current one.
func (s *server) apply(c *configuration) (err error) {
	first := s.shown() == nil
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.loadedOK = err == nil; err == nil {
			if s.loadedAt = time.Now(); first {
				s.loadedAt = s.env.Started
			}
		}
	}()
	s.mu.Lock()
	s.config = c.shown
	s.mu.Unlock()
	// The scrape manager first: it must know the jobs whose targets it is sent.
	if err := s.scraping.ApplyConfig(c.used); err != nil {
		return err
	}
	if err := s.targets.ApplyConfig(c.discoveries()); err != nil {
		return err
	}
	g := c.used.GlobalConfig
	if err := s.rules.Update(time.Duration(g.EvaluationInterval), c.rules, g.ExternalLabels, s.opts.external.String(),
		nil); err != nil {
		return err
	}
	s.log.Info("Completed loading of configuration file", "filename", s.env.Path(s.opts.configFile))
	return nil
}

// attend reloads the configuration when it is asked to, until the program is to end.
func (s *server) attend(ctx context.Context, signals <-chan syscall.Signal) {
	reload := func() error {
		c, err := load(s.env, s.opts.configFile, s.cluster, s.log)
		if err == nil {
			err = s.apply(c)
		} else {
			s.mu.Lock()
			s.loadedOK = false
			s.mu.Unlock()
		}
		if err != nil {
			s.log.Error("Error reloading config", "err", err)
			return fmt.Errorf("couldn't load configuration (--config.file=%q): %w", s.env.Path(s.opts.configFile), err)
		}
		return nil
	}
	for {
		select {
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				s.log.Warn("Received an OS signal, exiting gracefully...", "signal", sig.String())
				return
			}
			_ = reload() // It is in the log.
		case answer := <-s.reloads:
			answer <- reload()
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) shown() *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

func (s *server) interval() model.Duration { return s.shown().GlobalConfig.EvaluationInterval }
