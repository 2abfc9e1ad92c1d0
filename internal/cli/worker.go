package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/server"
	"github.com/aiopslab/aiopslab/session"
)

// workerReady is what a worker prints when it can be asked.
const workerReady = "ready"

// answerTimeout is how long the last answers of a worker or a server may take.
const answerTimeout = 5 * time.Second

type workerFlags struct {
	socket  string
	queue   string
	results string
	models  modelFlags
}

// newWorker is the command that 'serve' starts for each session or environment: it holds one cluster,
// and ends when its standard input does.
func newWorker(s *State) *cobra.Command {
	f := &workerFlags{}
	c := &cobra.Command{
		Use: "worker", Short: "Run a session or an environment for 'aiopslab serve'", Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return work(c.Context(), s, f) },
	}
	c.Flags().StringVar(&f.socket, "socket", "", "where to listen")
	c.Flags().StringVar(&f.queue, "queue", "", "`file` that is locked while the environment is set up, one worker at a time")
	c.Flags().StringVar(&f.results, "results", defaultResults, "`directory` of the records")
	f.models.add(c)
	return c
}

func work(ctx context.Context, s *State, f *workerFlags) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, s.Stdin)
		cancel()
	}()
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		return fmt.Errorf("open the worker's socket: %w", err)
	}
	lab := &workerLab{state: s, flags: f, ready: make(chan struct{}), settled: func() {}}
	w := server.NewWorker(lab)
	web := &http.Server{Handler: w, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: answerTimeout}
	go func() { _ = web.Serve(l) }()
	fmt.Fprintln(s.Stdout, workerReady)
	if lab.settled, err = queueUp(ctx, f.queue); err == nil {
		err = withCluster(ctx, s, func(string) {}, func(ctx context.Context, c *embedded.Cloud) error {
			lab.set(c, nil)
			<-ctx.Done()
			w.Close()
			lab.close()
			return nil
		})
		lab.settled()
	}
	lab.set(nil, err)
	<-ctx.Done() // Until then, it can be asked what went wrong.
	w.Close()
	last, stop := context.WithTimeout(context.Background(), answerTimeout)
	defer stop()
	if web.Shutdown(last) != nil {
		_ = web.Close()
	}
	return err
}

// workerLab is the environment of a worker.
type workerLab struct {
	state *State
	flags *workerFlags

	// settled lets the next worker set its environment up. Setting up takes a processor for seconds; if
	// many did so at once, none would be in time.
	settled func()

	once  sync.Once
	ready chan struct{} // closed when there is a cluster, or there will be none
	cloud *embedded.Cloud
	err   error

	mu    sync.Mutex
	stage *session.Stage
}

// set says what came of starting the cluster. Only the first time counts.
func (l *workerLab) set(c *embedded.Cloud, err error) {
	l.once.Do(func() {
		if l.cloud, l.err = c, err; c == nil && err == nil {
			l.err = errors.New("the worker is ending")
		}
		close(l.ready)
	})
}

// up waits for the cluster.
func (l *workerLab) up(ctx context.Context) (*embedded.Cloud, error) {
	select {
	case <-l.ready:
		return l.cloud, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *workerLab) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage != nil {
		l.stage.Close()
	}
}

func (l *workerLab) Open(ctx context.Context, spec server.Spec, events func(record.Event)) (server.Run, error) {
	run, err := l.session(spec)
	if err != nil {
		return nil, err
	}
	run.Events = func(e record.Event) {
		if e.Kind == record.BriefingEvent || e.Kind == record.SubmissionEvent {
			l.settled()
		}
		events(e)
	}
	if run.Cloud, err = l.up(ctx); err != nil {
		return nil, err
	}
	if spec.Agent == "" {
		return run.Open(ctx), nil
	}
	return server.Solo(ctx, run), nil
}

func (l *workerLab) Stage(ctx context.Context, spec server.Spec) error {
	p, err := spec.Find()
	if err != nil {
		return err
	}
	c, err := l.up(ctx)
	if err != nil {
		return err
	}
	defer l.settled()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage == nil {
		l.stage, err = session.NewStage(ctx, c, p.App)
	}
	return err
}

func (l *workerLab) Episode(ctx context.Context, spec server.Spec, events func(record.Event)) (server.Run, error) {
	run, err := l.session(spec)
	if err != nil {
		return nil, err
	}
	run.Events = events
	l.mu.Lock()
	run.Stage = l.stage
	l.mu.Unlock()
	if run.Stage == nil || !run.Stage.Fits(run.Problem) {
		return nil, server.ErrMisfit
	}
	return run.Open(ctx), nil
}

// session is the run of a spec, but for where it takes place.
func (l *workerLab) session(spec server.Spec) (run session.Session, err error) {
	run = session.Session{
		ID: spec.ID, Agent: agent.Entry{Name: spec.Name}, Results: l.flags.results,
		Scratch: filepath.Dir(l.flags.socket), // The server removes it, however a worker ends.
		Seed:    spec.Seed, Steps: spec.MaxSteps, Time: time.Duration(spec.MaxTime * float64(time.Second)),
		Self: toolCommand(l.state), Budget: l.flags.models.budget(),
	}
	if run.Problem, err = spec.Find(); err != nil {
		return run, err
	}
	if run.Judge, err = l.flags.models.openJudge(l.state); err != nil {
		return run, err
	}
	if spec.Agent != "" {
		run.Agent, run.Model, err = openAgent(l.state, l.flags.models, spec.NewSession)
	}
	return run, err
}

// openAgent returns the named agent of a session, and its model.
func openAgent(s *State, models modelFlags, n server.NewSession) (agent.Entry, llm.Model, error) {
	a, err := findAgent(s, n.Agent)
	if err != nil {
		return a, nil, err
	}
	if n.Model != "" {
		models.model = n.Model
	}
	m, err := models.open(s, a)
	if err != nil || m == nil {
		return a, nil, err
	}
	return a, sampled{m, n.Sampling}, nil
}

// sampled is a model that is asked to reply in a certain way.
type sampled struct {
	llm.Model
	how server.Sampling
}

func (m sampled) Chat(ctx context.Context, r llm.Request) (llm.Reply, error) {
	if m.how.Temperature != nil {
		r.Temperature = m.how.Temperature
	}
	if m.how.TopP != nil {
		r.TopP = m.how.TopP
	}
	if m.how.MaxTokens > 0 {
		r.MaxTokens = m.how.MaxTokens
	}
	return m.Model.Chat(ctx, r)
}
