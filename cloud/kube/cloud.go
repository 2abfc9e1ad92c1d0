// Package kube is a cloud that somebody has already: whatever a kubeconfig points to.
//
//	c, err := kube.Open(ctx, kube.Options{Context: "kind-lab"})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	conn, err := c.Dial(ctx, "tcp", "frontend.shop.svc.cluster.local:80")
//
// It needs nothing in the cluster. The way into its network is the API server's port-forward, so whoever may forward
// ports may use the lab, from anywhere. Such a connection enters the network in the pod that it ends at: neither a
// NetworkPolicy nor what disturbs that pod's own traffic has an effect on it.
//
// Pods of a run can be disturbed where Chaos Mesh is installed; without it they can be killed.
package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/aiopslab/aiopslab/cloud"
)

// openTimeout is how long a cluster may take to say that it is there.
const openTimeout = 15 * time.Second

// requestTimeout is how long one request of the lab's own may take.
const requestTimeout = 30 * time.Second

// Options say which cluster, and what of it.
type Options struct {
	// Kubeconfig is a file; empty for where kubectl looks: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string
	Context    string // of the file; empty for the current one
	// Config is a kubeconfig itself, as Resolve returns it, instead of a file.
	Config []byte
	// Run, Namespaces, Suffix and Load are those of a claim: see [cloud.Tenancy]. Without namespaces, all can be
	// reached.
	Run        string
	Namespaces []string
	Suffix     string
	Load       string
	// Program returns the path of a program that an image of the lab finds by its name, or "". It may be nil.
	Program func(image, name string) string
}

// Cloud is a cluster that a kubeconfig points to.
type Cloud struct {
	// Context is the name in the kubeconfig of what was opened.
	Context string
	// Version is what the API server says of itself.
	Version version.Info

	cluster string // its name in the kubeconfig
	run     string // of a tenancy, as are the next
	suffix  string
	load    string
	program func(image, name string) string

	config *rest.Config
	names  *names
	pool   *pool

	// What the lab itself looks at and changes, and the time by which it does.
	client  kubernetes.Interface
	meta    metadata.Interface
	dynamic dynamic.Interface
	clock   *clock
	mesh    mesh // as it was when the cluster was opened, as is the next
	host    host
}

var (
	_ cloud.Cloud     = (*Cloud)(nil)
	_ cloud.Shared    = (*Cloud)(nil)
	_ cloud.PodDialer = (*Cloud)(nil)
	_ cloud.Librarian = (*Cloud)(nil)
)

// Open reads a kubeconfig and asks the cluster for its version, whether it has Chaos Mesh, and what else only some
// faults need. The cluster is left as it is, by Close as well.
func Open(ctx context.Context, o Options) (*Cloud, error) {
	raw, err := o.read()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the context %s: %w", raw.CurrentContext, err)
	}
	c, err := connect(config)
	if err != nil {
		return nil, fmt.Errorf("the context %s: %w", raw.CurrentContext, err)
	}
	c.Context, c.cluster = raw.CurrentContext, raw.Contexts[raw.CurrentContext].Cluster
	c.run, c.suffix, c.load, c.names.allowed = o.Run, o.Suffix, o.Load, o.Namespaces
	c.program = o.Program
	if err := c.greet(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the cluster of context %s does not answer: %w", c.Context, err), c.Close())
	}
	return c, nil
}

// HasImage implements cloud.Librarian. What registries have is not known here.
func (c *Cloud) HasImage(string) bool { return false }

// Program implements cloud.Librarian.
func (c *Cloud) Program(image, name string) string {
	if c.program == nil {
		return ""
	}
	return c.program(image, name)
}

// Resolved is what another process needs to open a cluster.
type Resolved struct {
	// Config is a kubeconfig with one context, and with the contents of the files that it names.
	Config  []byte
	Context string // its name
	Plugin  bool   // a program is run to get credentials
}

// Resolve reads a kubeconfig, and asks the cluster nothing.
func Resolve(o Options) (r Resolved, err error) {
	raw, err := o.read()
	if err != nil {
		return r, err
	}
	r.Context = raw.CurrentContext
	if err := clientcmdapi.FlattenConfig(raw); err != nil {
		return r, fmt.Errorf("the context %s: %w", r.Context, err)
	}
	for _, user := range raw.AuthInfos {
		r.Plugin = r.Plugin || user.Exec != nil
	}
	r.Config, err = clientcmd.Write(*raw)
	return r, err
}

// read returns the kubeconfig with nothing but the context that is meant, which is its current one.
func (o Options) read() (*clientcmdapi.Config, error) {
	raw, err := o.load()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if o.Context != "" {
		raw.CurrentContext = o.Context
	}
	switch name := raw.CurrentContext; {
	case name == "":
		return nil, errors.New("the kubeconfig has no current context: name one")
	case raw.Contexts[name] == nil:
		return nil, fmt.Errorf("the kubeconfig has no context %q", name)
	}
	if err := clientcmdapi.MinifyConfig(raw); err != nil {
		return nil, fmt.Errorf("the context %s: %w", raw.CurrentContext, err)
	}
	return raw, nil
}

func (o Options) load() (*clientcmdapi.Config, error) {
	if o.Config != nil {
		return clientcmd.Load(o.Config)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := rules.Load()
	if err == nil && o.Kubeconfig == "" && len(config.Contexts) == 0 {
		return fromInside(accountDir, os.Getenv), nil
	}
	return config, err
}

// connect returns the cluster that a configuration points to, without asking it anything.
func connect(config *rest.Config) (*Cloud, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // The API server has a limit of its own.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &Cloud{config: config, names: newNames(client), pool: newPool(client, config), clock: &clock{}}
	own := rest.CopyConfig(config)
	own.Wrap(c.clock.listen)
	own.Timeout = requestTimeout
	own.WarningHandler = rest.NoWarnings{} // They would be printed.
	if c.client, err = kubernetes.NewForConfig(own); err != nil {
		return nil, err
	}
	if c.meta, err = metadata.NewForConfig(own); err != nil {
		return nil, err
	}
	c.dynamic, err = dynamic.NewForConfig(own)
	return c, err
}

func (c *Cloud) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer within %v", openTimeout))
	defer cancel()
	v, err := c.client.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return err
	}
	c.Version, c.mesh, c.host = *v, c.findMesh(ctx), c.look(ctx)
	return nil
}

// RESTConfig implements cloud.Cloud.
func (c *Cloud) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Tenancy implements cloud.Shared.
func (c *Cloud) Tenancy() cloud.Tenancy {
	return cloud.Tenancy{
		Run: c.run, Namespaces: slices.Clone(c.names.allowed), Suffix: c.suffix,
		Labels: map[string]string{RunLabel: c.run}, Load: c.load,
	}
}

// Close ends all connections. Nothing changes in the cluster.
func (c *Cloud) Close() error {
	c.names.close()
	c.pool.close()
	return nil
}
