package main

import (
	"context"
	"os"

	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/internal/builtin/images"
	"github.com/aiopslab/aiopslab/kit"
)

// embed starts a cluster in this process, with some images more than the lab has, for what cannot be seen from outside.
func (r *run) embed(ctx context.Context, more ...kit.Image) (*embedded.Cloud, kubernetes.Interface, error) {
	dir, err := os.MkdirTemp(r.dir, "embedded-")
	if err != nil {
		return nil, nil, err
	}
	c, err := embedded.Start(ctx, embedded.Options{Images: kit.NewRegistry(append(images.All(), more...)...), Dir: dir})
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
