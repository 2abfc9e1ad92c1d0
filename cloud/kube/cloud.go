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
package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/cloud"
)

// openTimeout is how long a cluster may take to say that it is there.
const openTimeout = 15 * time.Second

// requestTimeout is how long one request of the lab's own may take.
const requestTimeout = 30 * time.Second

// Options say which cluster.
type Options struct {
	// Kubeconfig is a file; empty for where kubectl looks: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string
	Context    string // of the file; empty for the current one
}

// Cloud is a cluster that a kubeconfig points to.
type Cloud struct {
	// Context is the name in the kubeconfig of what was opened.
	Context string
	// Version is what the API server says of itself.
	Version version.Info

	cluster string // its name in the kubeconfig

	config *rest.Config
	names  *names
	pool   *pool

	// What the lab itself looks at and changes, and the time by which it does.
	client kubernetes.Interface
	meta   metadata.Interface
	clock  *clock
}

var _ cloud.Cloud = (*Cloud)(nil)

// Open reads a kubeconfig and asks the cluster for its version. The cluster is left as it is, by Close as well.
func Open(ctx context.Context, o Options) (*Cloud, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := file.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	name := o.Context
	if name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		return nil, errors.New("the kubeconfig has no current context: name one")
	}
	if raw.Contexts[name] == nil {
		return nil, fmt.Errorf("the kubeconfig has no context %q", name)
	}
	config, err := file.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the context %s: %w", name, err)
	}
	c, err := connect(config)
	if err != nil {
		return nil, fmt.Errorf("the context %s: %w", name, err)
	}
	c.Context, c.cluster = name, raw.Contexts[name].Cluster
	if err := c.greet(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the cluster of context %s does not answer: %w", name, err), c.Close())
	}
	return c, nil
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
	if c.client, err = kubernetes.NewForConfig(own); err != nil {
		return nil, err
	}
	c.meta, err = metadata.NewForConfig(own)
	return c, err
}

func (c *Cloud) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer within %v", openTimeout))
	defer cancel()
	v, err := c.client.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return err
	}
	c.Version = *v
	return nil
}

// RESTConfig implements cloud.Cloud.
func (c *Cloud) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Close ends all connections. Nothing changes in the cluster.
func (c *Cloud) Close() error {
	c.names.close()
	c.pool.close()
	return nil
}
