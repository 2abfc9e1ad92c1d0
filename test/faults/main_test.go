package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	component "k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

const (
	// patience is how long a condition may take to come about. It is long because the machine may be
	// busy; a test that passes does not wait for it.
	patience = 3 * time.Minute
	poll     = 200 * time.Millisecond
)

// lab is the cloud that all tests share. Each starts from a snapshot of it.
var lab struct {
	cloud  *embedded.Cloud
	client kubernetes.Interface
	apply  *manifest.Client
	empty  cloud.Snapshot
	bin    string // where kubectl is
}

// TestMain runs the tests in a cloud. Called as kubectl, the test binary is kubectl, for the
// commands of reference solutions.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(runKubectl())
	}
	code, err := runIn(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runKubectl() int {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		Arguments: os.Args, IOStreams: streams, ConfigFlags: genericclioptions.NewConfigFlags(true),
	})
	return component.Run(root)
}

func runIn(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tools := shell.Tools()
	lab.cloud, err = embedded.Start(ctx, embedded.Options{Images: kit.NewRegistry(
		coredns.Image(), metricsserver.Image(), jaeger.Image(), consul.Image(tools), mongo.Image(tools), memcached.Image(tools), redis.Image(tools),
		hotel.Image(tools), hotel.GeoImage(tools), social.Image(tools),
	)})
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := lab.cloud.Close(); err == nil {
			err = cerr
		}
	}()
	if err := lab.cloud.WaitReady(ctx); err != nil {
		return 0, err
	}
	config := lab.cloud.RESTConfig()
	config.QPS = -1
	if lab.client, err = kubernetes.NewForConfig(config); err != nil {
		return 0, err
	}
	if lab.apply, err = manifest.NewClient(config); err != nil {
		return 0, err
	}
	if lab.empty, err = lab.cloud.Snapshot(ctx); err != nil {
		return 0, err
	}
	if lab.bin, err = os.MkdirTemp("", "faults"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(lab.bin)
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := os.Symlink(self, filepath.Join(lab.bin, "kubectl")); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
