package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/server"
	pages "github.com/aiopslab/aiopslab/server/page"
)

const (
	// defaultAddr has the port of AIOpsLab's service.
	defaultAddr = "127.0.0.1:1818"
	// endTimeout is how long sessions have to be graded when the server ends.
	endTimeout = time.Minute
	// idleTimeout is how long a connection is kept for another request.
	idleTimeout = 2 * time.Minute
	// maxHeader is how long the header of a request may be.
	maxHeader = 64 << 10
)

type serveFlags struct {
	addr     string
	token    string
	sessions int
	queued   int
	results  string
	untilEOF bool
	memory   memoryFlag
	models   modelFlags
	policy   policyFlags
	cloud    cloudFlags
	pods     podFlags
}

func newServe(s *State) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions and training environments over HTTP",
		Long: `Serve the lab over HTTP: sessions whose agent is the caller, agents that are run
on demand, environments for training, which OpenEnv's clients can use as well, and
AIOpsLab's own endpoints. The server describes itself at /openapi.json;
docs/server.md tells more. For people it has pages about the runs, and incidents to
work on in a browser, at the link that it prints; see docs/page.md.

Every session has a process and a cluster of its own or, with --cloud kubeconfig,
namespaces in a cluster that you have, where there are none for training. With
--on cluster the processes are pods of a cluster that you have, each the one of a
Job, so that there can be more of them than one machine holds; see
docs/campaigns.md. Ctrl-C ends them all, and grades what there is. Standard error
has a line for each session, environment and refused request, and more with
--log-level debug.`,
		Example: `  aiopslab serve
  aiopslab serve --addr 0.0.0.0:1818 --token-file token
  aiopslab serve --on cluster --image registry.example/aiopslab:v1 --max-sessions 200`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("token-file") && f.token == "" {
				return fail(ExitUsage, errors.New("--token-file: there is no name of a file"), "")
			}
			if !f.pods.cluster() {
				if err := refuseUnused(c, podsOnly); err != nil {
					return err
				}
			} else if err := f.pods.complete(&f.cloud, f.memory.bytes); err != nil {
				return err
			}
			if !c.Flags().Changed("max-sessions") {
				f.sessions = f.usual()
			}
			return serve(c.Context(), s, f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "where to listen; port 0 is any")
	flags.StringVar(&f.token, "token-file", "",
		"`file` with the token that callers must show; otherwise AIOPSLAB_TOKEN, or none")
	flags.IntVar(&f.sessions, "max-sessions", 0, "how many sessions and environments there may be at once")
	// Manual pages are the same everywhere.
	flags.Lookup("max-sessions").DefValue = fmt.Sprintf("%d for each processor, if there is memory for them; %d on a "+
		"cluster", sessionsForProcessor, server.DefaultMaxSessions)
	flags.IntVar(&f.queued, "max-queued", server.DefaultMaxQueued,
		"how many sessions may wait in line for a place; 0 refuses them at once")
	flags.StringVar(&f.results, "results", defaultResults, "`directory` of the records")
	flags.BoolVar(&f.untilEOF, "until-eof", false,
		"end when standard input does, and log nothing unless told to, for programs that start the server")
	f.memory.add(c)
	f.models.add(c)
	f.policy.add(c)
	f.cloud.add(c)
	f.cloud.addIKnow(c)
	f.cloud.addImages(c, s)
	f.cloud.addLoadFrom(c)
	f.cloud.addPast(c)
	f.pods.add(c, "sessions")
	return c
}

// here reports whether the environments of sessions are on this machine.
func (f *serveFlags) here() bool { return !f.pods.cluster() && !f.cloud.onCluster() }

// usual is how many sessions there may be at once, if nobody says.
func (f *serveFlags) usual() int {
	if f.here() {
		return usualSessions(os.DirFS("/"))
	}
	return server.DefaultMaxSessions
}

// openPosts finds the cluster whose pods are the processes of sessions, and looks whether it would have them. It is nil
// for this machine.
func (f *serveFlags) openPosts(ctx context.Context, log *slog.Logger) (*campaign.Posts, error) {
	if !f.pods.cluster() {
		return nil, nil
	}
	c, err := f.pods.connect(ctx, &f.cloud)
	if err != nil {
		return nil, err
	}
	p := &campaign.Posts{
		Cloud: c, Namespace: f.pods.namespace, Image: f.pods.image, PullSecret: f.pods.pullSecret, Queue: f.pods.queue,
		Resources: f.pods.resources, Args: []string{"worker", "--" + apartFlag},
		Tell: func(line string) { log.Warn(line) },
	}
	if err := p.Open(ctx); err != nil {
		c.Close()
		return nil, fail(ExitEnvironment, err, "")
	}
	return p, nil
}

// open checks the flags, and returns the listener and what the front needs to know of it.
func (f *serveFlags) open(s *State) (net.Listener, server.Options, error) {
	o := server.Options{MaxSessions: f.sessions, MaxQueued: f.queued}
	var err error
	if o.Token, err = readToken(s, f.token); err != nil {
		return nil, o, err
	}
	if o.Library, err = s.library(); err != nil {
		return nil, o, err
	}
	f.policy.elsewhere = true
	if err := f.policy.read(false); err != nil {
		return nil, o, err
	}
	if f.policy.asksElsewhere() && o.Token == "" {
		return nil, o, fail(ExitUsage, errors.New("--approver ask: without a token an agent could approve itself"),
			"Give the server one with --token-file or AIOPSLAB_TOKEN.")
	}
	if f.sessions < 1 {
		return nil, o, fail(ExitUsage, fmt.Errorf("--max-sessions %d: it is 1 at least", f.sessions), "")
	}
	if f.queued < 0 {
		return nil, o, fail(ExitUsage, fmt.Errorf("--max-queued %d: it cannot be negative", f.queued), "")
	}
	level := "info"
	if f.untilEOF { // The program that started it would have it on its own standard error.
		level = logs.Off
	}
	o.Log = s.logger(level, o.Token)
	if o.Loopback, err = checkAddr(f.addr, o.Token, "--token-file or AIOPSLAB_TOKEN"); err != nil {
		return nil, o, err
	}
	for _, a := range s.Parts.AllAgents(s.Stderr) {
		o.Agents = append(o.Agents, a.Name)
	}
	o.Check = func(ctx context.Context, n server.NewSession) error { return checkAgent(ctx, s, f.models, n) }
	l, err := net.Listen("tcp", f.addr)
	return l, o, fail(ExitError, err, "Choose another with --addr.")
}

// envToken is the token in the environment. One that is set and empty is a mistake, such as a secret
// that was not found, and must not open the server to everybody.
func envToken(s *State) (string, error) {
	token := strings.TrimSpace(s.Env("AIOPSLAB_TOKEN"))
	if _, set := s.LookupEnv("AIOPSLAB_TOKEN"); set && token == "" {
		return "", fail(ExitUsage, errors.New("AIOPSLAB_TOKEN is set, and empty"),
			"Give it a value, or unset it to do without a token.")
	}
	return token, nil
}

// checkAddr refuses an address that other machines reach, unless there is a token.
func checkAddr(addr, token, how string) (loopback bool, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fail(ExitUsage, fmt.Errorf("--addr %s: %w", addr, err),
			"Write it as HOST:PORT, such as "+defaultAddr+".")
	}
	ip, err := netip.ParseAddr(host)
	loopback = host == "localhost" || err == nil && ip.IsLoopback()
	if !loopback && token == "" {
		return false, fail(ExitUsage, fmt.Errorf("--addr %s can be reached from other machines, and there is no token",
			addr),
			"Whoever reaches the server can use it: give it a token with "+how+", or listen on 127.0.0.1.")
	}
	return loopback, nil
}

func serve(ctx context.Context, s *State, f *serveFlags) error {
	if s.own {
		keepMemory() // It knows what is wrong, and its callers may be on this machine.
	}
	tmp := tempDir(s)
	if err := checkTemp(tmp); err != nil {
		return err
	}
	if _, err := environments(tmp); err != nil { // Cleans up after the killed.
		return err
	}
	if err := checkResults(f.results); err != nil {
		return err
	}
	results, err := filepath.Abs(f.results)
	if err != nil {
		return err
	}
	if err := f.cloud.ask(ctx); err != nil {
		return err
	}
	l, o, err := f.open(s)
	if err != nil {
		return err
	}
	defer l.Close()
	if f.cloud.onCluster() {
		o.NoEnvs = noStage
		if o.Lacks, err = f.cloud.lacking(ctx); err != nil {
			return err
		}
	}
	posts, err := f.openPosts(ctx, o.Log)
	if err != nil {
		return err
	}
	setups := processors()
	if posts != nil { // Which pods run when is up to the cluster.
		defer posts.Cloud.Close()
		setups = f.sessions
	}
	dir, err := newDir(tmp)
	if err != nil {
		return fail(ExitEnvironment, err, tempHint)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := untilSignal(ctx, func() {
		fmt.Fprintln(s.Stderr, "ending the sessions; press Ctrl-C again to stop at once")
	})
	defer cancel()
	if f.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, s.Stdin)
			cancel()
		}()
	}
	workers := &processes{
		state: s, library: o.Library, results: results, models: f.models, ceiling: f.memory.bytes, dir: dir,
		policy: &f.policy, cloud: f.cloud, posts: posts, setups: make(chan struct{}, setups),
	}
	if worldsDir(s) != "" && !f.cloud.onCluster() {
		workers.worlds = &heldWorlds{}
	}
	if f.here() {
		workers.room = func(growing int) bool { return roomForMore(os.DirFS("/"), growing) }
	}
	o.Workers = workers
	if !f.untilEOF { // A program that starts the server is often the agent.
		o.Pages = pages.New(pages.Options{Dir: results, Cache: indexCache(), Library: o.Library, Token: o.Token})
		defer o.Pages.Close()
	}
	front := server.NewFront(o)
	requests, abandon := context.WithCancel(context.Background())
	defer abandon()
	web := &http.Server{
		Handler: front, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: answerTimeout, IdleTimeout: idleTimeout,
		ErrorLog:    logs.ErrorLog(o.Log, slog.LevelWarn, "api"),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	fmt.Fprintf(s.Stdout, "listening on http://%s\n", l.Addr())
	if o.Pages != nil {
		fmt.Fprintf(s.Stderr, "look at the runs: http://%s%s\n", l.Addr(), o.Pages.Link())
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	end, stop := context.WithTimeout(context.Background(), endTimeout)
	defer stop()
	if o.Pages != nil {
		o.Pages.Close()
	}
	front.Close(end)
	abandon() // Whoever still waits waits in vain.
	last, stopLast := context.WithTimeout(context.Background(), answerTimeout)
	defer stopLast()
	if web.Shutdown(last) != nil {
		_ = web.Close()
	}
	if _, serr := environments(tmp); serr != nil { // What killed workers left.
		err = errors.Join(err, serr)
	}
	return err
}
