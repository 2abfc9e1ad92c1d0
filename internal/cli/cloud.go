package cli

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/cloud/kube"
)

// The values of --cloud.
const (
	embeddedCloud   = "embedded"
	kubeconfigCloud = "kubeconfig"
)

var cloudNames = []string{embeddedCloud, kubeconfigCloud}

// cloudFlags say which cluster a command works on: a new one in a process of its own, or one that is there.
type cloudFlags struct {
	cloud      string // one of cloudNames
	context    string
	kubeconfig string
	iKnow      bool
	images     *string // the prefix of a registry; nil if the command has no --images
	loadFrom   string  // one of loadPlaces; empty if the command has no --load-from
	past       pastFlag
}

// add adds the flags to a command that works on either cloud. If the command has a --kubeconfig already, which means
// something else, it keeps that one, and $KUBECONFIG says where the clusters are.
func (f *cloudFlags) add(c *cobra.Command) {
	f.cloud = embeddedCloud
	c.Flags().Var(&wordFlag{&f.cloud, "cloud", cloudNames}, "cloud",
		"`where` to run: embedded, a new cluster in this program; or kubeconfig, a cluster that you have")
	completeFlag(c, "cloud", func() []string { return cloudNames })
	f.addCluster(c)
}

// addIKnow adds the flag that lifts the refusal of a cluster which others seem to depend on.
func (f *cloudFlags) addIKnow(c *cobra.Command) {
	c.Flags().BoolVar(&f.iKnow, "i-know", false,
		"use the cluster even if it looks like one that others depend on; 'aiopslab doctor' tells why")
}

// addCluster adds the flags that choose among the clusters of a kubeconfig.
func (f *cloudFlags) addCluster(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.context, "context", "", "the `name` of the cluster's context (default the current one)")
	if flags.Lookup("kubeconfig") == nil {
		flags.StringVar(&f.kubeconfig, "kubeconfig", "",
			"`file` that the context is in (default $KUBECONFIG, else ~/.kube/config)")
	}
	completeFlag(c, "context", f.contexts)
}

// onCluster says that the command works on a cluster that is there.
func (f *cloudFlags) onCluster() bool { return f.cloud == kubeconfigCloud }

// options are the cluster that is meant. It refuses flags that mean nothing to the embedded cloud.
func (f *cloudFlags) options() (kube.Options, error) {
	if f.cloud == embeddedCloud {
		for _, given := range []struct {
			yes  bool
			flag string
		}{
			{f.context != "", "--context"},
			{f.kubeconfig != "", "--kubeconfig"},
			{f.iKnow, "--i-know"},
			{f.registry() != "", "--images lab"},
			{f.loadFrom != "" && f.loadFrom != autoLoad, "--load-from"},
			{f.past.given, "--past"},
		} {
			if given.yes {
				return kube.Options{}, fail(ExitUsage, errors.New(given.flag+" means nothing to the embedded cloud"),
					"Add --cloud kubeconfig to use a cluster that you have, or leave it out.")
			}
		}
	}
	return kube.Options{Kubeconfig: f.kubeconfig, Context: f.context}, nil
}

// open connects to the cluster.
func (f *cloudFlags) open(ctx context.Context) (*kube.Cloud, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	c, err := kube.Open(ctx, o)
	return c, fail(ExitEnvironment, err, clusterHint)
}

// clusterHint is what to do about a cluster that cannot be reached.
const clusterHint = "Try 'kubectl cluster-info' with the same context; " +
	"'kubectl config get-contexts' lists what there is."

// contexts are the names that --context can have, or none if there is no kubeconfig.
func (f *cloudFlags) contexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}
