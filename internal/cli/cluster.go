package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session/process"
)

// leaveTimeout is how long a cluster may take to remove what a run made there.
const leaveTimeout = 3 * time.Minute

// guest is the place of a run in a cluster that is somebody's. The supervisor holds it: however the environment ends,
// what was made there is removed.
type guest struct {
	kube.Resolved
	flags *cloudFlags
	cloud *kube.Cloud
	claim *kube.Claim
}

// newGuest reads the kubeconfig, and asks the cluster nothing yet. It returns nil for a run in a cluster of its own.
func newGuest(f *cloudFlags) (*guest, error) {
	o, err := f.options()
	if err != nil || !f.onCluster() {
		return nil, err
	}
	g := &guest{flags: f}
	if g.Resolved, err = kube.Resolve(o); err != nil {
		return nil, fail(ExitUsage, err, clusterHint)
	}
	return g, nil
}

// begins is what a run begins with.
func (g *guest) begins() string {
	if g == nil {
		return "starting a cluster"
	}
	return "using the cluster of context " + g.Context
}

// open takes the place of a run in the cluster, and has its environment use it.
func (g *guest) open(ctx context.Context, run string, p *problem.Problem, env *process.Environment) (err error) {
	if g.cloud, err = g.flags.open(ctx); err != nil {
		return err
	}
	if why := p.Lacks(g.cloud); why != "" {
		return fail(ExitUsage, errors.New(why), "'aiopslab problems --cloud kubeconfig' lists what can be run there.")
	}
	if err := g.ask(ctx); err != nil {
		return err
	}
	namespaces := []string{p.App.Namespace, observe.Namespace}
	if g.claim, err = g.cloud.Claim(ctx, run, namespaces...); err != nil {
		return fail(ExitEnvironment, err, "")
	}
	return env.OpenOn(ctx, process.Cluster{Kubeconfig: g.Config, Run: run, Namespaces: namespaces})
}

// ask refuses a cluster that others seem to depend on, unless its user has said that he knows.
func (g *guest) ask(ctx context.Context) error {
	if g.flags.iKnow {
		return nil
	}
	for _, f := range kube.Production(g.cloud.Examine(ctx, kube.Need{})) {
		return fail(ExitUsage, fmt.Errorf("others may depend on this cluster: %s", f.Text),
			"Choose another with --context, or add --i-know. The lab uses namespaces of its own there, and the "+
				"machines that all share.")
	}
	return nil
}

// leave removes what the run has made in the cluster, and hangs up.
func (g *guest) leave(progress func(string)) (err error) {
	if g == nil || g.cloud == nil {
		return nil
	}
	defer g.cloud.Close()
	if g.claim == nil {
		return nil
	}
	progress("removing what was made in the cluster")
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	return fail(ExitEnvironment, g.claim.Close(ctx), "Run 'aiopslab cleanup' later, with the same --context.")
}

// keeps reports whether the process of an environment needs a variable that it would not get otherwise: one of those
// that programs read which get credentials for a cluster.
func (g *guest) keeps(variable string) bool {
	return g != nil && g.Plugin && slices.ContainsFunc([]string{
		"AWS_", "AZURE_", "ARM_", "GOOGLE_", "CLOUDSDK_", "DIGITALOCEAN_",
	}, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
}

// args are the flags, for a run in another process.
func (f *cloudFlags) args() []string {
	if !f.onCluster() {
		return nil
	}
	args := []string{"--cloud", f.cloud}
	if f.context != "" {
		args = append(args, "--context", f.context)
	}
	if f.kubeconfig != "" {
		args = append(args, "--kubeconfig", f.kubeconfig)
	}
	if f.iKnow {
		args = append(args, "--i-know")
	}
	return args
}

// lacking asks the cluster that is meant what it has, and returns why it cannot have a problem. A new cluster can have
// all of them.
func (f *cloudFlags) lacking(ctx context.Context) (func(p *problem.Problem) string, error) {
	if _, err := f.options(); err != nil || !f.onCluster() {
		return func(*problem.Problem) string { return "" }, err
	}
	c, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	return func(p *problem.Problem) string { return p.Lacks(c) }, c.Close()
}
