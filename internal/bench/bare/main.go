// Command bare is the embedded cloud with a few images and kubectl, without what the lab builds on them. The bench
// builds it to tell how much of the lab's size and build time is the cloud's.
//
//	bare               starts a cluster, prints its kubeconfig, and stays until Ctrl-C
//	bare kubectl ...   is kubectl
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/curl"
	"github.com/aiopslab/aiopslab/image/e2e/agnhost"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/nginx"
	"github.com/aiopslab/aiopslab/image/pause"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bare: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) > 1 {
		c := kubectl.NewDefaultKubectlCommand()
		c.SetArgs(os.Args[2:])
		return c.Execute()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tools := shell.Tools()
	c, err := embedded.Start(ctx, embedded.Options{Images: kit.NewRegistry(
		coredns.Image(), metricsserver.Image(), pause.Image(), busybox.Image(tools), curl.Image(tools),
		nginx.Image(tools), agnhost.Image(tools),
	)})
	if err != nil {
		return err
	}
	defer c.Close()
	config, err := c.Kubeconfig("bare")
	if err != nil {
		return err
	}
	fmt.Printf("%s", config)
	<-ctx.Done()
	return nil
}
