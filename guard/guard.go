package guard

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// DefaultUser is whom an agent acts as.
	DefaultUser = "sre"
	// DefaultGroup is the agent's group. It has all rights.
	DefaultGroup = "sre-team"

	headerTimeout = 30 * time.Second
	// rightsTimeout is how long the API server may take to learn of a binding.
	rightsTimeout = 30 * time.Second
	rightsPoll    = 10 * time.Millisecond
	idleTimeout   = 2 * time.Minute
)

// Options says what a guard stands in front of, for whom, and what it hides.
type Options struct {
	// Upstream is the API server, with the lab's own rights, which must include impersonation.
	Upstream *rest.Config
	// User and Groups are whom the agent acts as; empty are DefaultUser and DefaultGroup.
	User   string
	Groups []string
	// Hide is what the agent cannot see, beside what Builtin returns and the lab's own user.
	Hide []Rule
	// Journal is called for every write, one at a time and in order, when the API server has answered
	// it and before the agent has the answer. It must not call the guard. It may be nil.
	Journal func(Entry)
}

// Guard is a running proxy. Its methods are safe for concurrent use.
type Guard struct {
	opts     Options
	upstream *url.URL
	agent    http.RoundTripper // acts as the agent
	upgrades http.RoundTripper // acts as the agent, over HTTP/1.1
	lab      http.RoundTripper // acts as the lab
	veil     *veil
	journal  journal

	listener net.Listener
	server   *http.Server
	token    string
	ca       []byte

	ctx    context.Context
	cancel context.CancelFunc
	// requests are those under way. After closed is set there are no new ones.
	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup
	count    atomic.Int64 // requests so far
	once     sync.Once
	served   chan struct{}
}

// Start gives the agent's group its rights in the cluster and listens on a port of the loopback
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
	if o.User == "" {
		o.User = DefaultUser
	}
	if len(o.Groups) == 0 {
		o.Groups = []string{DefaultGroup}
	}
	g := &Guard{opts: o, token: rand.Text(), served: make(chan struct{}), journal: journal{write: o.Journal}}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if g.veil, err = newVeil(append(Builtin(), o.Hide...), g.look); err != nil {
		return nil, err
	}
	if err := g.connect(); err != nil {
		return nil, err
	}
	user, err := g.prepare(ctx)
	if err != nil {
		return nil, err
	}
	g.veil.users = append(g.veil.users, user)
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
		ErrorLog:          log.New(io.Discard, "", 0), // Clients that hang up are no news.
		BaseContext:       func(net.Listener) context.Context { return g.ctx },
	}
	return g, nil
}

// connect makes the transports. Answers must be readable, so they are not compressed.
func (g *Guard) connect() error {
	lab := rest.CopyConfig(g.opts.Upstream)
	lab.Timeout, lab.DisableCompression = 0, true
	u, _, err := rest.DefaultServerUrlFor(lab)
	if err != nil {
		return err
	}
	g.upstream = u
	if g.lab, err = rest.TransportFor(lab); err != nil {
		return err
	}
	agent := rest.CopyConfig(lab)
	agent.Impersonate = rest.ImpersonationConfig{UserName: g.opts.User, Groups: g.opts.Groups}
	agent.UserAgent = "" // The agent's client has its own, or none.
	if g.agent, err = rest.TransportFor(agent); err != nil {
		return err
	}
	upgrades := rest.CopyConfig(agent)
	if upgrades.Transport == nil {
		upgrades.NextProtos = []string{"http/1.1"}
	}
	g.upgrades, err = rest.TransportFor(upgrades)
	return err
}

// prepare binds the agent's groups to all rights if nobody did, and returns the lab's own name.
func (g *Guard) prepare(ctx context.Context) (user string, err error) {
	rbac, err := rbacclient.NewForConfig(g.opts.Upstream)
	if err != nil {
		return "", err
	}
	for _, group := range g.opts.Groups {
		_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("give the group %s its rights: %w", group, err)
		}
	}
	if err := g.awaitRights(ctx); err != nil {
		return "", err
	}
	authentication, err := authenticationclient.NewForConfig(g.opts.Upstream)
	if err != nil {
		return "", err
	}
	r, err := authentication.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask who the lab is: %w", err)
	}
	return r.Status.UserInfo.Username, nil
}

// awaitRights waits until the API server knows of the agent's rights: it reads bindings from a cache.
func (g *Guard) awaitRights(ctx context.Context) error {
	authorization, err := authorizationclient.NewForConfig(g.opts.Upstream)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: g.opts.User, Groups: g.opts.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	for {
		r, err := authorization.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && r.Status.Allowed {
			return nil
		}
		select {
		case <-time.After(rightsPoll):
		case <-ctx.Done():
			return fmt.Errorf("%s of %v did not get its rights: %w", g.opts.User, g.opts.Groups, errors.Join(err, ctx.Err()))
		}
	}
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

// Close ends all requests, watches and upgraded connections included, and returns when they have
// ended. It may be called more than once.
func (g *Guard) Close() error {
	var err error
	g.once.Do(func() {
		g.mu.Lock()
		g.closed = true
		g.mu.Unlock()
		g.cancel()
		err = g.server.Close()
		<-g.served
		g.requests.Wait()
		for _, rt := range []http.RoundTripper{g.agent, g.upgrades, g.lab} {
			utilnet.CloseIdleConnectionsFor(rt)
		}
	})
	return err
}

// Requests is how many requests the guard got so far.
func (g *Guard) Requests() int64 { return g.count.Load() }

// enter counts a request in, unless the guard is closed.
func (g *Guard) enter() bool {
	g.count.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.requests.Add(1)
	}
	return !g.closed
}
