package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/internal/term"
)

func redeployWithoutPV() *Kind {
	return Define(Kind{
		Name:  "redeploy_without_pv",
		Title: "An application is deployed anew and its volumes cannot be bound",
		Description: `The volumes of an application are kept (their reclaim policy becomes Retain), its namespace is deleted,
and the application is deployed again with claims that ask for their volumes by name. The volumes are
Released, not Available: each still belongs to a claim that is gone. So the new claims and the pods of
the databases stay Pending, and nothing that needs them works. The data is still there. An operator
clears the claimRef of the volumes, or makes the claims anew without the names. Without a target it
hits all volumes; with one, the others are bound again. Where the lab is a guest, the namespace stays, and
what runs in it and its claims are deleted.`,
		Cause:   Cause{term.Virtualization, term.OperationError},
		Needs:   NeedsVolumes,
		Targets: func(a *app.App) []string { return append([]string{""}, withVolumes(a)...) },
	}, none{}, func(t Target, _ none) (Fault, error) {
		o, err := read(t.App)
		return &unbound{parts: o, servers: stranded(t), clients: clientsOf(t.App, stranded(t))}, err
	}, func(t Target, _ none) []string {
		commands := []string{
			`for pv in $(kubectl get pvc -o jsonpath='{range .items[?(@.status.phase=="Pending")]}{.spec.volumeName}{"\n"}{end}'); do kubectl patch pv "$pv" --type=merge -p '{"spec":{"claimRef":null}}'; done`,
		}
		for _, s := range stranded(t) {
			commands = append(commands, rollout(t.App, s))
		}
		return append(commands, restart(t, clientsOf(t.App, stranded(t)))...)
	})
}

// withVolumes are the services that keep their data in persistent volumes.
func withVolumes(a *app.App) []string {
	o, err := read(a)
	if err != nil {
		return nil
	}
	return services(a, func(s app.Service) bool { return len(o.claims(s.Name)) > 0 })
}

// stranded are the services whose volumes cannot be bound.
func stranded(t Target) []string {
	if t.Service != "" {
		return []string{t.Service}
	}
	return withVolumes(t.App)
}

// clientsOf are the services that call one of others.
func clientsOf(a *app.App, others []string) []string {
	return services(a, func(s app.Service) bool {
		return slices.ContainsFunc(s.Calls, func(c string) bool { return slices.Contains(others, c) })
	})
}

// patchManager is the field manager of kubectl patch, with which an operator changes a volume.
const patchManager = "kubectl-patch"

var _ Borrower = (*unbound)(nil)

// unbound is an application whose volumes are not available.
type unbound struct {
	parts   parts
	servers []string // those without their volumes
	clients []string // of them

	namespace types.UID                                   // of the application before; empty where the lab is a guest
	volumes   map[string]*v1.PersistentVolume             // by claim, as they were
	policies  map[string]v1.PersistentVolumeReclaimPolicy // by volume
}

func (f *unbound) Inject(ctx context.Context, e *Env) error {
	if e.Config == nil {
		return errors.New("redeploy_without_pv: the environment has no configuration of the cluster to deploy with")
	}
	if f.volumes == nil {
		if err := f.keep(ctx, e); err != nil {
			return err
		}
	}
	if err := f.undeploy(ctx, e); err != nil {
		return err
	}
	kept := f.claimsOf(f.servers)
	for claim, pv := range f.volumes {
		if !slices.Contains(kept, claim) {
			if err := release(ctx, e, pv.Name); err != nil {
				return err
			}
		}
	}
	c, err := manifest.NewClient(e.Config)
	if err != nil {
		return err
	}
	objects := f.objects()
	if e.Dress != nil {
		for _, u := range objects {
			if slices.Contains([]string{"Deployment", "Service", "ConfigMap"}, u.GetKind()) {
				e.Dress(u)
			}
		}
	}
	if err := c.Apply(ctx, e.App.Namespace, objects); err != nil {
		return err
	}
	e.applied(objects...)
	return nil
}

// keep sees to it that the volumes outlive their claims.
func (f *unbound) keep(ctx context.Context, e *Env) error {
	ns, err := e.Client.CoreV1().Namespaces().Get(ctx, e.App.Namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	uid := ns.UID
	if e.Guest {
		uid = ""
	}
	volumes, policies := map[string]*v1.PersistentVolume{}, map[string]v1.PersistentVolumeReclaimPolicy{}
	for _, claim := range f.claimsOf(withVolumes(e.App)) {
		pvc, err := e.Client.CoreV1().PersistentVolumeClaims(e.App.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pvc.Spec.VolumeName == "" {
			return fmt.Errorf("redeploy_without_pv: the claim %s has no volume yet", claim)
		}
		pv, err := e.Client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if e.Lend != nil {
			if err := e.Lend(ctx, pv.Name); err != nil {
				return err
			}
		}
		if err := setPolicy(ctx, e, pv.Name, v1.PersistentVolumeReclaimRetain); err != nil {
			return err
		}
		volumes[claim], policies[pv.Name] = pv, pv.Spec.PersistentVolumeReclaimPolicy
	}
	f.namespace, f.volumes, f.policies = uid, volumes, policies
	return nil
}

// undeploy deletes the application, unless that is done, and waits until it and the claims are gone.
func (f *unbound) undeploy(ctx context.Context, e *Env) error {
	if f.namespace == "" {
		if err := f.clearNamespace(ctx, e); err != nil {
			return err
		}
		return f.awaitRelease(ctx, e)
	}
	namespaces := e.Client.CoreV1().Namespaces()
	gone := func(ctx context.Context) (bool, error) {
		ns, err := namespaces.Get(ctx, e.App.Namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && ns.UID != f.namespace, ignoreNotFound(err)
	}
	if done, err := gone(ctx); err != nil {
		return err
	} else if !done {
		if err := f.stopWorkloads(ctx, e); err != nil {
			return err
		}
		err := namespaces.Delete(ctx, e.App.Namespace,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(f.namespace))})
		if ignoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	if err := poll(ctx, "namespace "+e.App.Namespace+" to go", gone); err != nil {
		return err
	}
	return f.awaitRelease(ctx, e)
}

// clearNamespace deletes the application's workloads and its claims, and waits until those are gone.
func (f *unbound) clearNamespace(ctx context.Context, e *Env) error {
	if err := f.stopWorkloads(ctx, e); err != nil {
		return err
	}
	claims := e.Client.CoreV1().PersistentVolumeClaims(e.App.Namespace)
	old := func(ctx context.Context, name string) (*v1.PersistentVolumeClaim, error) {
		pvc, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err == nil && pvc.UID != f.volumes[name].Spec.ClaimRef.UID { // Its successor is there already.
			return nil, nil
		}
		return pvc, err
	}
	for name := range f.volumes {
		pvc, err := old(ctx, name)
		if err == nil && pvc != nil {
			err = claims.Delete(ctx, name,
				metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pvc.UID))})
		}
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return poll(ctx, "the claims to go", func(ctx context.Context) (bool, error) {
		for name := range f.volumes {
			pvc, err := old(ctx, name)
			if ignoreNotFound(err) != nil || err == nil && pvc != nil {
				return false, ignoreNotFound(err)
			}
		}
		return true, nil
	})
}

func (f *unbound) awaitRelease(ctx context.Context, e *Env) error {
	return poll(ctx, "the volumes to be released", func(ctx context.Context) (bool, error) {
		for _, pv := range f.volumes {
			now, err := e.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
			if err != nil || now.Status.Phase == v1.VolumeBound && now.Spec.ClaimRef != nil &&
				now.Spec.ClaimRef.UID == pv.Spec.ClaimRef.UID {
				return false, err
			}
		}
		return true, nil
	})
}

// stopWorkloads deletes what runs, and waits until it has ended. The deletion of a namespace with pods
// in it takes longer.
func (f *unbound) stopWorkloads(ctx context.Context, e *Env) error {
	background := metav1.DeletePropagationBackground
	err := e.Client.AppsV1().Deployments(e.App.Namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return poll(ctx, "the pods of "+e.App.Name+" to end", func(ctx context.Context) (bool, error) {
		pods, err := e.Client.CoreV1().Pods(e.App.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Volumes implements Borrower.
func (f *unbound) Volumes() (names []string) {
	for _, pv := range f.volumes {
		names = append(names, pv.Name)
	}
	slices.Sort(names)
	return names
}

// claimsOf are the claims of services.
func (f *unbound) claimsOf(services []string) (names []string) {
	for _, s := range services {
		names = append(names, f.parts.claims(s)...)
	}
	return names
}

// objects are those of the application, with claims that ask for the volumes they had. That is how
// they look when they come from a copy of what was deployed.
func (f *unbound) objects() parts {
	var list parts
	for _, u := range f.parts {
		u = u.DeepCopy()
		if pv := f.volumes[u.GetName()]; u.GetKind() == "PersistentVolumeClaim" && pv != nil {
			_ = unstructured.SetNestedField(u.Object, pv.Name, "spec", "volumeName")
			_ = unstructured.SetNestedField(u.Object, pv.Spec.StorageClassName, "spec", "storageClassName")
		}
		list = append(list, u)
	}
	return list
}

func (f *unbound) Manifest(ctx context.Context, e *Env) (string, error) {
	var pending []string
	for _, claim := range f.claimsOf(f.servers) {
		pvc, err := e.Client.CoreV1().PersistentVolumeClaims(e.App.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return "", err
		}
		if err == nil && pvc.Status.Phase != v1.ClaimBound {
			pending = append(pending, claim)
		}
	}
	if len(pending) > 0 {
		return "claims without a volume: " + strings.Join(pending, ", "), nil
	}
	return health(ctx, e, append(slices.Clone(f.servers), f.clients...)...)
}

func (f *unbound) Recover(ctx context.Context, e *Env) error {
	for _, pv := range f.volumes {
		if err := release(ctx, e, pv.Name); err != nil {
			return err
		}
		// With its old policy, a volume would be deleted for as long as it counts as released.
		err := poll(ctx, "volume "+pv.Name+" to be available", func(ctx context.Context) (bool, error) {
			now, err := e.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err) || err == nil && now.Status.Phase != v1.VolumeReleased, ignoreNotFound(err)
		})
		if err != nil {
			return err
		}
		if err := ignoreNotFound(setPolicy(ctx, e, pv.Name, f.policies[pv.Name])); err != nil {
			return err
		}
	}
	return restartUnready(ctx, e, f.clients...)
}

// release makes a volume available that belongs to a claim which is gone.
func release(ctx context.Context, e *Env, name string) error {
	pv, err := e.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || pv.Status.Phase != v1.VolumeReleased {
		return ignoreNotFound(err)
	}
	return patchVolume(ctx, e, name, `{"spec":{"claimRef":null}}`)
}

// setPolicy says what becomes of a volume whose claim goes.
func setPolicy(ctx context.Context, e *Env, name string, policy v1.PersistentVolumeReclaimPolicy) error {
	return patchVolume(ctx, e, name, fmt.Sprintf(`{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy))
}

func patchVolume(ctx context.Context, e *Env, name, patch string) error {
	_, err := e.Client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: patchManager})
	return err
}
