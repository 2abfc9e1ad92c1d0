package session

import (
	"context"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
)

// deployTimeout is how long an application may take to be ready.
const deployTimeout = 5 * time.Minute

// Deploy brings an application and its telemetry up, and returns when all of it is ready. Metrics and
// alerts begin when the application is up.
func Deploy(ctx context.Context, c cloud.Cloud, a *app.App) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	o, err := observe.New(cloud.DirectConfig(c), c.Dial, cloud.TenancyOf(c))
	if err != nil {
		return err
	}
	defer o.Close()
	o.Registry = a.Registry
	if err := o.Deploy(ctx, func(ctx context.Context) error { return deployApp(ctx, c, a) }); err != nil {
		return err
	}
	return reach(ctx, c, a)
}

// reachTimeout is how long it may take until what is ready can be reached.
const reachTimeout = 30 * time.Second

// reach finds out whether there is a way to an application in a cluster that is somebody's. If there is none, as where
// ports cannot be forwarded, all that users would tell is that nobody answers.
func reach(ctx context.Context, c cloud.Cloud, a *app.App) error {
	if cloud.TenancyOf(c) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var why error
	err := poll(ctx, lookInterval/4, func() (bool, error) {
		conn, err := c.Dial(ctx, "tcp", a.Host())
		if err != nil {
			if why == nil || ctx.Err() == nil { // At the end it is only that the time is up.
				why = err
			}
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil && why != nil {
		err = why
	}
	if err != nil {
		return fmt.Errorf("%s is ready and cannot be reached: %w", a.Frontend.Service, err)
	}
	return nil
}

func deployApp(ctx context.Context, c cloud.Cloud, a *app.App) error {
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return err
	}
	client, err := manifest.NewClient(cloud.DirectConfig(c))
	if err != nil {
		return err
	}
	if t := cloud.TenancyOf(c); t != nil {
		client.Labels = t.Labels
	}
	if err := client.Apply(ctx, a.Namespace, objects); err != nil {
		return err
	}
	return client.WaitReady(ctx, a.Namespace, objects)
}
