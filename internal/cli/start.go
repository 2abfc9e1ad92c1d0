package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/session"
)

const (
	readyTimeout = 2 * time.Minute
	// minFree is the free space an environment needs to start: etcd allocates its files ahead.
	minFree = 64 << 20
	// maxTempLen is how long the temporary directory's name may be: the address of a socket starts with
	// it, and has room for 103 bytes on every system.
	maxTempLen = 103 - len("/aiopslab-env-4294967295/sh4294967295/submit")

	tempHint = "Choose another directory with AIOPSLAB_TMPDIR."
)

// place is a cluster that is up, with an application in it if one was asked for.
type place struct {
	cloud   cloud.Cloud
	app     *app.App // as it is there; nil for none
	tenancy *cloud.Tenancy
	env     environment // for who uses it from other processes

	broken <-chan struct{} // closed when it has broken down, nil if that cannot be known
	why    func() error
	close  func() error
}

// interruptibly starts something and returns when it is ready to use, or a signal comes.
func interruptibly(ctx context.Context, signals <-chan os.Signal, start func(context.Context) (*place, error),
) (*place, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var p *place
	done := make(chan error, 1)
	go func() {
		var err error
		p, err = start(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		return p, err
	case sig := <-signals:
		cancel()
		if err := <-done; err == nil {
			_ = p.close()
		}
		return nil, statusOf(sig)
	}
}

// startCluster starts a cluster, makes it known and deploys the application, if there is one.
func startCluster(ctx context.Context, s *State, w wish, kubeconfig string, a *app.App) (_ *place, err error) {
	c, err := startNew(ctx, s, w)
	if err != nil {
		return nil, startFailure(err)
	}
	p := &place{cloud: c, app: a, broken: c.Done(), why: func() error { return brokenDown(c) }}
	p.close = func() (err error) {
		if cerr := c.Close(); cerr != nil {
			err = fmt.Errorf("take the cluster down: %w", cerr)
		}
		if rerr := p.env.leave(); rerr != nil {
			err = errors.Join(err, fmt.Errorf("restore the kubeconfig: %w", rerr))
		}
		return err
	}
	defer func() {
		if err != nil {
			_ = p.close()
		}
	}()
	if p.env, err = publish(c, kubeconfig); err != nil {
		return nil, startFailure(err)
	}
	w.progress("waiting for cluster DNS and metrics")
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		return nil, startFailure(cmp.Or(c.Err(), err))
	}
	if a != nil {
		w.progress("deploying " + a.Name)
		if err := session.Deploy(ctx, c, a); err != nil {
			return nil, fail(ExitEnvironment, fmt.Errorf("deploy %s: %w", a.Name, cmp.Or(c.Err(), err)), "")
		}
	}
	c.Settle()
	return p, nil
}

// checkTemp refuses a temporary directory that cannot hold an environment.
func checkTemp(dir string) error {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	if err == nil {
		err = unix.Access(dir+"/.", unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s: %w", dir, err), tempHint)
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < minFree {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s has %d MB free, an environment needs %d", dir,
			free>>20, minFree>>20), tempHint)
	}
	if len(dir) > maxTempLen {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s: the name is longer than %d characters", dir,
			maxTempLen), tempHint)
	}
	return nil
}

// startFailure explains why a cluster did not start.
func startFailure(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "Another program has the port; leave --listen out to use any free one."
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS):
		hint = tempHint
	}
	return fail(ExitEnvironment, fmt.Errorf("start the cluster: %w", err), hint)
}

// brokenDown explains why a cluster has ended by itself.
func brokenDown(c newCluster) error {
	hint := ""
	if errors.Is(c.Err(), syscall.ENOSPC) {
		hint = tempHint
	}
	return fail(ExitEnvironment, fmt.Errorf("the cluster broke down: %w", c.Err()), hint)
}

// publish writes what other processes need to use the environment.
func publish(c newCluster, kubeconfig string) (environment, error) {
	e := environment{
		dir: c.Dir(), PID: os.Getpid(), Started: time.Now(), Server: "https://" + c.Address(),
		Kubeconfig: filepath.Join(c.Dir(), "kubeconfig"), Control: filepath.Join(c.Dir(), "control"),
	}
	b, err := c.Kubeconfig(contextName)
	if err != nil {
		return e, err
	}
	if err := os.WriteFile(e.Kubeconfig, b, 0o600); err != nil {
		return e, err
	}
	if kubeconfig != "" {
		if e.restore, err = addToKubeconfig(kubeconfig, b); err != nil {
			return e, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	if err := serveControl(c, e.Control); err != nil {
		return e, err
	}
	return e, announce(e)
}
