package main

import (
	"context"
	"os"

	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/nginx"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// embed starts a cluster in this process, with a few images and the given ones, for what cannot be
// seen from outside.
func (r *run) embed(ctx context.Context, images ...kit.Image) (*embedded.Cloud, kubernetes.Interface, error) {
	registry := kit.NewRegistry(append(images, coredns.Image(), metricsserver.Image(), nginx.Image(shell.Tools()))...)
	dir, err := os.MkdirTemp(r.dir, "embedded-")
	if err != nil {
		return nil, nil, err
	}
	c, err := embedded.Start(ctx, embedded.Options{Images: registry, Dir: dir})
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err == nil {
		err = c.WaitReady(ctx)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	c.Settle()
	return c, client, nil
}
