package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// check refuses flags that mean nothing where the cluster is to be.
func (f *upFlags) check() error {
	if _, err := f.cloud.options(); err != nil || !f.cloud.onCluster() {
		return err
	}
	for _, given := range []struct {
		yes  bool
		flag string
	}{
		{f.nodesGiven, "--nodes"},
		{f.listenGiven, "--listen"},
		{f.from != "", "--from"},
		{f.kubeconfig != "", "--kubeconfig"},
	} {
		if given.yes {
			return fail(ExitUsage, errors.New(given.flag+" means nothing to a cluster that is there"),
				"Leave it out, or leave --cloud out to start one. $KUBECONFIG and --context say which is meant.")
		}
	}
	if f.app == "" {
		return fail(ExitUsage, errors.New("there is nothing to do in a cluster that is up already"),
			"Name an application to deploy in it with --app.")
	}
	return nil
}

// settleIn deploys an application in a cluster that is there, which is to have a load.
func settleIn(ctx context.Context, f *cloudFlags, dir string, a *app.App, l *problem.Load, progress func(string),
) (_ *place, err error) {
	g, err := newGuest(f)
	if err != nil {
		return nil, err
	}
	progress(g.begins())
	defer func() {
		if err != nil {
			err = errors.Join(err, g.leave(progress))
		}
	}()
	if g.cloud, err = f.open(ctx); err != nil {
		return nil, err
	}
	run := session.NewID()
	if err := g.settle(ctx, run, a, l); err != nil {
		return nil, err
	}
	c, err := kube.Open(ctx, kube.Options{
		Config: g.Config, Run: run, Namespaces: g.tenancy.Namespaces, Suffix: g.tenancy.Suffix,
		Load: g.tenancy.Load,
	})
	if err != nil {
		return nil, fail(ExitEnvironment, err, clusterHint)
	}
	p := &place{
		cloud: c, app: a.In(g.tenancy.Name(a.Namespace)), tenancy: g.tenancy,
		env: environment{dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")},
	}
	p.close = func() error { return errors.Join(c.Close(), g.leave(progress)) }
	progress(fmt.Sprintf("deploying %s in %s", a.Name, strings.Join(g.tenancy.Namespaces, " and ")))
	if err = os.WriteFile(p.env.Kubeconfig, g.Config, 0o600); err == nil {
		err = session.Deploy(ctx, c, p.app)
	}
	if err != nil {
		return nil, errors.Join(fail(ExitEnvironment, fmt.Errorf("deploy %s: %w", a.Name, err),
			"'aiopslab doctor --cloud kubeconfig' may tell what the cluster lacks."), c.Close())
	}
	return p, nil
}

// howTo says how others use the place.
func (p *place) howTo() string {
	if p.tenancy != nil {
		return "kubectl get pods -n " + p.app.Namespace
	}
	return fmt.Sprintf("export KUBECONFIG=%s\n\n  aiopslab kubectl get pods -A      finds this cluster by itself",
		p.env.Kubeconfig)
}
