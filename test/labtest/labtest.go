// Package labtest runs the tests of a package in one embedded cloud, which they share: a process holds one.
//
//	var lab labtest.Lab
//
//	func TestMain(m *testing.M) { lab.Main(m, labtest.Options{Images: images()}) }
//
// The test binary is kubectl as well: called by that name, it is nothing else.
package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	component "k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
)

// Patience is how long a condition may take to come about. It is long because the machine may be busy; a test
// that passes does not wait for it.
const Patience = 3 * time.Minute

// Lab is a cloud and what tests need of it. It is set while tests run.
type Lab struct {
	Cloud  *embedded.Cloud
	Config *rest.Config
	Client kubernetes.Interface
	Apply  *manifest.Client
	Bin    string // a directory with kubectl
}

// Options say what there is in the cloud.
type Options struct {
	Images []kit.Image
	// Prepare is called once the cloud is ready. What it returns is called after the tests; it may be nil.
	Prepare func(ctx context.Context) (stop func(), err error)
}

// Main runs the tests in a cloud and exits. It is all of a TestMain.
func (l *Lab) Main(m *testing.M, o Options) {
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(runKubectl())
	}
	code, err := l.run(m, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runKubectl() int {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return component.Run(kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		Arguments: os.Args, IOStreams: streams,
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams),
	}))
}

func (l *Lab) run(m *testing.M, o Options) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if l.Cloud, err = embedded.Start(ctx, embedded.Options{Images: kit.NewRegistry(o.Images...)}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Cloud.Close()) }()
	if err := l.Cloud.WaitReady(ctx); err != nil {
		return 0, err
	}
	l.Config = l.Cloud.RESTConfig()
	l.Config.QPS = -1
	if l.Client, err = kubernetes.NewForConfig(l.Config); err != nil {
		return 0, err
	}
	if l.Apply, err = manifest.NewClient(l.Config); err != nil {
		return 0, err
	}
	if l.Bin, err = os.MkdirTemp("", "labtest-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(l.Bin)
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := os.Symlink(self, filepath.Join(l.Bin, "kubectl")); err != nil {
		return 0, err
	}
	if o.Prepare != nil {
		stop, err := o.Prepare(ctx)
		if err != nil {
			return 0, err
		}
		if stop != nil {
			defer stop()
		}
	}
	return m.Run(), nil
}

// poll is how often a condition is looked at.
const poll = 50 * time.Millisecond

// Await calls check until it returns no error, and returns its value. The last error, which says what is lacking, is
// what the test fails with.
func Await[T any](t *testing.T, check func() (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for {
		v, err := check()
		if err == nil {
			return v
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			t.Fatalf("gave up waiting: %v", err)
		}
	}
}
