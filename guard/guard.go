package guard

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/guard/undo"
	"github.com/aiopslab/aiopslab/internal/logs"
)

const (
	// DefaultUser is the user that an agent acts as.
	DefaultUser = "sre"
	// DefaultGroup is the agent's group.
	DefaultGroup = "sre-team"

	headerTimeout = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Options says what a guard stands in front of, for whom, and what it hides.
type Options struct {
	// Upstream is the API server, with the lab's own rights, which must include impersonation.
	Upstream *rest.Config
	// Direct is the same API server, reached in a way that the agent cannot redirect, for what the guard itself
	// wants to know; nil means Upstream.
	Direct *rest.Config
	// Revision is how far the API server's store is, in the numbers of its resource versions, and costs nothing to
	// ask. With it, objects before a write are read while the write is under way; nil if it is not known.
	Revision func() int64
	// User and Groups are the identity that the agent acts with; by default DefaultUser and DefaultGroup.
	User   string
	Groups []string
	// Namespaces are where the agent may do everything; none for everywhere. Outside of them it may read what
	// everybody who uses a cluster has to know.
	Namespaces []string
	// Custom are the resources that the application itself defines. The agent has the same rights in those that are in
	// Namespaces as in Kubernetes' own.
	Custom []schema.GroupResource
	// Shadow says that the cluster is live: the agent reads Namespaces, with the rights of Upstream and without
	// Secrets. Nothing is written, no rights are made, and what would be a write goes to the journal as a proposal.
	Shadow bool
	// Volumes are persistent volumes whose claim the agent may change, where it has rights in Namespaces alone.
	Volumes []string
	// Labels are those of what the guard makes outside of namespaces.
	Labels map[string]string
	// Hide is what the agent cannot see, beside what Builtin returns and the lab's own user.
	Hide []Rule
	// Journal is called for every write, one at a time and in order, when the API server has answered
	// it and before the agent has the answer. It must not call the guard. It may be nil.
	Journal func(Entry)
	// Policy says what the agent's own clients may change, within its rights; nil for all. Home is the application's
	// namespace, for the policy.
	Policy *policy.Policy
	Home   string
	// Approve asks somebody about a change that the policy has asked for. It is nil if there is nobody.
	Approve func(ctx context.Context, q Question) Answer
	// Severity says how bad the system is, so that a transaction that makes it worse is not committed. It may be nil:
	// then nothing is compared.
	Severity Severity
	// Keeper keeps containers, so that commands in them can be taken back; nil if they cannot.
	Keeper cloud.Keeper
	// Transaction is called for what came of every action of transactions. It must not call the guard. It may be nil.
	Transaction func(Transaction)
	// Log is told of errors of the guard's server, at level debug: mostly a client has hung up. It may be nil.
	Log *slog.Logger
}

// Guard is a running proxy. Its methods are safe for concurrent use.
type Guard struct {
	opts     Options
	upstream *url.URL
	direct   *url.URL
	// Transports to upstream, by whom they act as; some over HTTP/1.1, for other protocols.
	asAgent, asAgentUpgraded   http.RoundTripper
	asAnyone, asAnyoneUpgraded http.RoundTripper // as whoever a request says
	asLab                      http.RoundTripper
	// Transports to direct.
	asLabDirect, asAnyoneDirect http.RoundTripper

	shadow  *shadow     // of a shadow run
	errors  *log.Logger // of its server and proxies
	veil    *veil
	journal journal
	history history
	callers callers
	undoer  *undo.Undoer
	writer  chan struct{} // holds one while somebody writes by the agent's own door
	settle  time.Duration // see settle

	listener net.Listener
	server   *http.Server
	token    string
	ca       []byte

	ctx    context.Context
	cancel context.CancelFunc
	// shut ends the requests of the agent's own clients.
	doorCtx context.Context
	shut    context.CancelFunc
	served  chan struct{}
	// visits are the requests of the agent's own clients that are under way, requests are all. After
	// left and closed are set there are no new ones.
	mu               sync.Mutex
	left, closed     bool
	visits, requests sync.WaitGroup
	total            atomic.Int64 // requests so far
}

// Start gives the agent's groups their rights in the cluster and listens on a port of the loopback
// interface. The guard lives until Close, whatever becomes of ctx.
func Start(ctx context.Context, o Options) (*Guard, error) {
	g, err := newGuard(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	go func() {
		defer close(g.served)
		_ = g.server.ServeTLS(g.listener, "", "") // It ends with Close.
	}()
	return g, nil
}

func newGuard(ctx context.Context, o Options) (*Guard, error) {
	if o.Upstream == nil {
		return nil, errors.New("there is no upstream")
	}
	if o.Upstream.Impersonate.UserName != "" {
		return nil, errors.New("the upstream configuration impersonates somebody: use the lab's own identity")
	}
	if o.Shadow && len(o.Namespaces) == 0 {
		return nil, errors.New("a shadow run needs the namespaces that may be read")
	}
	if o.User == "" {
		o.User = DefaultUser
	}
	if len(o.Groups) == 0 {
		o.Groups = []string{DefaultGroup}
	}
	g := &Guard{
		opts: o, token: rand.Text(), served: make(chan struct{}), journal: journal{write: o.Journal},
		errors: logs.ErrorLog(o.Log, slog.LevelDebug, "guard"), undoer: undo.New(nil), writer: make(chan struct{}, 1),
		settle: settle,
	}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	g.doorCtx, g.shut = context.WithCancel(g.ctx)
	var err error
	hidden := append(Builtin(), o.Hide...)
	if o.Shadow { // There is nothing of the lab's.
		g.shadow, hidden = newShadow(), o.Hide
	}
	if g.veil, err = newVeil(hidden, g.look); err != nil {
		return nil, err
	}
	if err := g.connect(); err != nil {
		return nil, err
	}
	if !o.Shadow {
		user, err := g.prepare(ctx)
		if err != nil {
			return nil, err
		}
		g.veil.users = append(g.veil.users, user)
	}
	cert, ca, err := newCertificate()
	if err != nil {
		return nil, err
	}
	g.ca = ca
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	g.server = &http.Server{
		Handler:           g.handler(),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          g.errors,
		BaseContext:       func(net.Listener) context.Context { return g.doorCtx },
	}
	return g, nil
}

// connect makes the transports. Answers must be readable, so they are not compressed. Who is at the
// other end of an API may be of the agent's making: it learns nothing of the lab's client.
func (g *Guard) connect() (err error) {
	open := func(c *rest.Config, t *http.RoundTripper) {
		if err == nil {
			*t, err = rest.TransportFor(c)
		}
		if g.shadow != nil {
			*t = readOnly{*t, strings.TrimSuffix(g.upstream.Path, "/")}
		}
	}
	prepare := func(c *rest.Config, u **url.URL) *rest.Config {
		c = rest.CopyConfig(c)
		c.Timeout, c.DisableCompression, c.UserAgent = 0, true, ""
		if err == nil {
			*u, _, err = rest.DefaultServerUrlFor(c)
		}
		return c
	}
	overHTTP1 := func(c *rest.Config) *rest.Config {
		c = rest.CopyConfig(c)
		if c.Transport == nil {
			c.NextProtos = []string{"http/1.1"}
		}
		return c
	}
	direct := g.opts.Upstream
	if g.opts.Direct != nil {
		direct = g.opts.Direct
	}
	lab := prepare(g.opts.Upstream, &g.upstream)
	direct = prepare(direct, &g.direct)
	agent := rest.CopyConfig(lab)
	if g.shadow == nil {
		agent.Impersonate = rest.ImpersonationConfig{UserName: g.opts.User, Groups: g.opts.Groups}
	}
	open(lab, &g.asLab)
	open(agent, &g.asAgent)
	open(overHTTP1(agent), &g.asAgentUpgraded)
	open(anyone(lab), &g.asAnyone)
	open(overHTTP1(anyone(lab)), &g.asAnyoneUpgraded)
	open(direct, &g.asLabDirect)
	open(anyone(direct), &g.asAnyoneDirect)
	return err
}

// Address returns where the guard listens, as host:port.
func (g *Guard) Address() string { return g.listener.Addr().String() }

// Kubeconfig returns a kubeconfig for the agent. The namespace is its context's.
func (g *Guard) Kubeconfig(namespace string) ([]byte, error) {
	const cluster = "kubernetes"
	k := clientcmdapi.NewConfig()
	k.Clusters[cluster] = &clientcmdapi.Cluster{Server: "https://" + g.Address(), CertificateAuthorityData: g.ca}
	k.AuthInfos[g.opts.User] = &clientcmdapi.AuthInfo{Token: g.token}
	k.CurrentContext = g.opts.User + "@" + cluster
	k.Contexts[k.CurrentContext] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: g.opts.User, Namespace: namespace}
	return clientcmd.Write(*k)
}

// Shut closes the agent's own door: it ends the requests of the agent's clients, watches and upgraded
// connections included, and returns when they have ended. What comes over the cluster's network is
// still answered and journalled.
func (g *Guard) Shut() error {
	g.mu.Lock()
	g.left = true
	g.mu.Unlock()
	g.shut()
	err := g.server.Close()
	<-g.served
	g.visits.Wait()
	return err
}

// Close shuts the agent's door and ends all other requests, too. It may be called more than once.
func (g *Guard) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	err := g.Shut()
	g.requests.Wait()
	for _, rt := range []http.RoundTripper{
		g.asAgent, g.asAgentUpgraded, g.asAnyone, g.asAnyoneUpgraded, g.asLab, g.asLabDirect, g.asAnyoneDirect,
	} {
		utilnet.CloseIdleConnectionsFor(rt)
	}
	return err
}

// Requests is how many requests the guard got so far.
func (g *Guard) Requests() int64 { return g.total.Load() }

// enter counts a request in, unless the guard is closed.
func (g *Guard) enter() bool {
	g.total.Add(1)
	return g.count(&g.closed, &g.requests)
}

// visit counts a request of the agent's own clients in, unless their door is shut.
func (g *Guard) visit() bool { return g.count(&g.left, &g.visits) }

func (g *Guard) count(over *bool, in *sync.WaitGroup) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !*over {
		in.Add(1)
	}
	return !*over
}
