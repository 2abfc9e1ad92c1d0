package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
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

	telemetry observe.External
	// tenancy is what was claimed.
	tenancy *cloud.Tenancy
}

// problem is one as it is where the run takes place.
func (g *guest) problem(p *problem.Problem) *problem.Problem {
	if g == nil {
		return p
	}
	return p.In(g.tenancy)
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
	if err := g.settle(ctx, run, p.App, p.Load(), p.Namespaces()...); err != nil {
		return err
	}
	return env.OpenOn(ctx, process.Cluster{
		Kubeconfig: g.Config, Run: run, Namespaces: g.tenancy.Namespaces, Suffix: g.tenancy.Suffix,
		Load: g.tenancy.Load, Registry: g.flags.registry(), Telemetry: g.telemetry,
	})
}

// settle takes namespaces for an application, its telemetry and what more there is, and one that is the lab's alone if
// its load is to come from a pod.
func (g *guest) settle(ctx context.Context, run string, a *app.App, l *problem.Load, more ...string) (err error) {
	if err := g.ask(ctx); err != nil {
		return err
	}
	if err := g.clear(ctx, a); err != nil {
		return err
	}
	names := append([]string{a.Namespace, observe.Namespace}, more...)
	pod := g.flags.fromPod(l)
	if pod {
		names = append(names, session.LoadNamespace)
	}
	if g.claim, err = g.cloud.Settle(ctx, run, names...); err != nil {
		return fail(ExitEnvironment, err, "")
	}
	t := g.claim.Tenancy()
	if pod {
		t.Load = t.Name(session.LoadNamespace)
		t.Namespaces = slices.DeleteFunc(t.Namespaces, func(name string) bool { return name == t.Load })
	}
	g.tenancy = &t
	return nil
}

// clear refuses an application that cannot be had in the cluster beside what is there already in no namespace, and
// removes what a dead run has left of that.
func (g *guest) clear(ctx context.Context, a *app.App) error {
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return err
	}
	switch err = g.cloud.Clear(ctx, objects); {
	case err == nil:
		return nil
	case errors.Is(err, kube.ErrNotOurs), errors.Is(err, kube.ErrMayNot):
		return fail(ExitUsage, cannotHave(a, err),
			"'aiopslab problems --cloud kubeconfig' lists what can be run there.")
	}
	return fail(ExitEnvironment, cannotHave(a, err), "")
}

func cannotHave(a *app.App, why error) error {
	return fmt.Errorf("%s cannot be had here: %w", a.Name, why)
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

// ask refuses a cluster that cannot be reached, or that others seem to depend on, before anybody asks for a run.
func (f *cloudFlags) ask(ctx context.Context) error {
	if g, err := newGuest(f); err != nil || g == nil {
		return err
	}
	c, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return (&guest{flags: f, cloud: c}).ask(ctx)
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
	if r := f.registry(); r != "" {
		args = append(args, "--images", labImages+r)
	}
	if f.loadFrom != "" {
		args = append(args, "--load-from", f.loadFrom)
	}
	if f.past.given {
		args = append(args, "--past", f.past.String())
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
	unfit := unfitness(ctx, c)
	return func(p *problem.Problem) string {
		if why := p.Lacks(c); why != "" {
			return why
		}
		return unfit(p.App)
	}, c.Close()
}

// turns tells which runs take turns on a cluster that is there: those of an application that has something in no
// namespace. Of others it says nothing. It is for one goroutine.
func (p *pool) turns() func(local.Run) string {
	known := map[string]string{}
	return func(r local.Run) string {
		a := p.by[r.Problem].App
		key, ok := known[a.Name]
		if !ok {
			// What cannot be read, its run tells.
			if objects, err := manifest.Read(a.Manifests); err == nil && kube.Wide(objects) {
				key = a.Name
			}
			known[a.Name] = key
		}
		return key
	}
}

// unfitness returns why a cluster cannot have an application, or "". The cluster is asked until it has told. That
// another run has what the application needs is no reason: it ends.
func unfitness(ctx context.Context, c *kube.Cloud) func(a *app.App) string {
	var mu sync.Mutex
	known := map[string]string{}
	return func(a *app.App) string {
		mu.Lock()
		defer mu.Unlock()
		if why, ok := known[a.Name]; ok {
			return why
		}
		objects, err := manifest.Read(a.Manifests)
		if err == nil {
			err = c.Admits(ctx, objects)
		}
		switch {
		case err == nil, errors.Is(err, kube.ErrInUse):
			known[a.Name] = ""
		case errors.Is(err, kube.ErrNotOurs), errors.Is(err, kube.ErrMayNot):
			known[a.Name] = cannotHave(a, err).Error()
		default:
			return cannotHave(a, err).Error()
		}
		return known[a.Name]
	}
}
