package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/cloud/kube"
)

// The values of --on.
const (
	onMachine = "machine"
	onCluster = "cluster"
)

var onNames = []string{onMachine, onCluster}

// podFlags say how pods of a cluster do what processes of this machine do otherwise.
type podFlags struct {
	on                string // one of onNames
	namespace         string
	image, pullSecret string
	queue             string
	cpu, memory       string

	resources campaign.Resources
}

// aside is what an environment's own process leaves to the others of its pod.
const aside = 512 << 20

// podsOnly are the flags that mean nothing on one machine.
var podsOnly = []string{"namespace", "image", "pull-secret", "queue", "cpu", "memory"}

// add adds the flags. What says who is in the pods.
func (f *podFlags) add(c *cobra.Command, what string) {
	f.on = onMachine
	flags, d := c.Flags(), campaign.DefaultResources()
	flags.Var(&wordFlag{&f.on, "on", onNames}, "on", "`where` the "+what+" go on: machine, in processes of this one; "+
		"or cluster, in pods of a cluster that you have")
	flags.StringVar(&f.namespace, "namespace", "", "`namespace` of the pods (default that of the context)")
	flags.StringVar(&f.image, "image", "", "`reference` of the image of this program, for the pods")
	flags.StringVar(&f.pullSecret, "pull-secret", "", "`name` of the Secret that the image is pulled with")
	flags.StringVar(&f.queue, "queue", "", "`name` of the queue of Kueue that admits the Job")
	flags.StringVar(&f.cpu, "cpu", d.CPU.String(), "processors that a pod asks for; it may use twice as `much`")
	flags.StringVar(&f.memory, "memory", d.Memory.String(),
		"memory that a pod asks for; it may use as `much` as --max-memory and 512Mi")
	completeFlag(c, "on", func() []string { return onNames })
}

func (f *podFlags) cluster() bool { return f.on == onCluster }

// refuseUnused refuses flags that mean nothing on one machine.
func refuseUnused(c *cobra.Command, lists ...[]string) error {
	for _, list := range lists {
		for _, name := range list {
			if c.Flags().Changed(name) {
				return fail(ExitUsage, fmt.Errorf("--%s is for what goes on in pods", name),
					"Add --on cluster, or leave it out.")
			}
		}
	}
	return nil
}

// complete checks the flags of pods that are to be, and fills in what follows from others. Most is how much memory an
// environment may take.
func (f *podFlags) complete(cloud *cloudFlags, most int64) (err error) {
	switch {
	case cloud.onCluster():
		return fail(ExitUsage, fmt.Errorf("--on cluster and --cloud %s are two ways", cloud.cloud),
			"Leave out --cloud: with --on cluster, each pod has an embedded cloud.")
	case f.image == "":
		return fail(ExitUsage, fmt.Errorf("--on cluster needs --image, the image of this program"),
			"docs/campaigns.md tells how to make it.")
	}
	f.resources = campaign.DefaultResources()
	for _, q := range []struct {
		flag, text string
		to         *resource.Quantity
	}{{"cpu", f.cpu, &f.resources.CPU}, {"memory", f.memory, &f.resources.Memory}} {
		if *q.to, err = resource.ParseQuantity(q.text); err != nil || q.to.Sign() <= 0 {
			return fail(ExitUsage, fmt.Errorf("--%s %s: want a quantity of Kubernetes, such as 500m or 1Gi", q.flag,
				q.text), "")
		}
	}
	f.resources.MaxMemory = *resource.NewQuantity(max(most+aside, f.resources.Memory.Value()), resource.BinarySI)
	return nil
}

// connect finds the cluster of the pods, and their namespace if the user has not named one.
func (f *podFlags) connect(ctx context.Context, cloud *cloudFlags) (*kube.Cloud, error) {
	options := kube.Options{Kubeconfig: cloud.kubeconfig, Context: cloud.context}
	r, err := kube.Resolve(options)
	if err == nil && f.namespace == "" {
		f.namespace, err = namespaceOf(r)
	}
	if err != nil {
		return nil, fail(ExitUsage, err, clusterHint)
	}
	c, err := kube.Open(ctx, options)
	if err != nil {
		return nil, fail(ExitEnvironment, err, clusterHint)
	}
	return c, nil
}

// namespaceOf is the namespace of a kubeconfig's context.
func namespaceOf(r kube.Resolved) (string, error) {
	config, err := clientcmd.Load(r.Config)
	if err != nil {
		return "", err
	}
	if x := config.Contexts[r.Context]; x != nil && x.Namespace != "" {
		return x.Namespace, nil
	}
	return "default", nil
}
