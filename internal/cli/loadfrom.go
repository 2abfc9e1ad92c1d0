package cli

import (
	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// autoLoad has the load come from where it does not stand in its own way.
const autoLoad = "auto"

var loadPlaces = []string{autoLoad, record.FromHere, record.FromCluster}

// addLoadFrom adds the flag that says where the load of a cluster that is there comes from.
func (f *cloudFlags) addLoadFrom(c *cobra.Command) {
	f.loadFrom = autoLoad
	c.Flags().Var(&wordFlag{&f.loadFrom, "load-from", loadPlaces}, "load-from",
		"`where` the load on a cluster that you have comes from: here, through its API server; cluster, a pod beside "+
			"the application; or auto, which is cluster for loads that are too much for the API server")
	completeFlag(c, "load-from", func() []string { return loadPlaces })
}

// fromPod says that a load is to come from a pod.
func (f *cloudFlags) fromPod(l *problem.Load) bool {
	if l == nil || l.None() {
		return false
	}
	return f.loadFrom == record.FromCluster || f.loadFrom == autoLoad && l.Peak() > kube.ForwardedRate
}
