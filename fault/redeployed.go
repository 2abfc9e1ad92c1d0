package fault

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RollBackFixes says that a rollback fixes a fault in the template of a Deployment's pods.
var RollBackFixes = map[string]string{RollBackEverything: "the revision before is the right one"}

// redeployed is a workload whose pods are made of a wrong template.
type redeployed struct{ right, wrong *unstructured.Unstructured }

// Redeploy makes a fault of a change to the template of a service's pods.
func Redeploy(t Target, change func(template map[string]any) error) (Fault, error) {
	f, err := redeploy(t, change)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func redeploy(t Target, change func(template map[string]any) error) (*redeployed, error) {
	o, err := read(t.App)
	if err != nil {
		return nil, err
	}
	right, err := o.object(t.App, cmp.Or(o.controller(t.Service).kind, "Deployment"), t.Service)
	if err != nil {
		return nil, err
	}
	wrong := right.DeepCopy()
	spec, _, err := unstructured.NestedMap(wrong.Object, "spec", "template", "spec")
	if err != nil {
		return nil, err
	}
	if err := change(spec); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedMap(wrong.Object, spec, "spec", "template", "spec"); err != nil {
		return nil, err
	}
	return &redeployed{right, wrong}, letGo(wrong)
}

// letGo has a Deployment let its old pods go before new ones are ready. A rolling update keeps as many as its strategy
// says; with one pod and nothing said it keeps it for ever if the new one does not get ready, and nothing would be
// wrong. The applications of the lab say that all may go, so that a fault writes nothing else than what it breaks. One
// that does not say so has the mistake in it as well.
func letGo(u *unstructured.Unstructured) error {
	path := []string{"spec", "strategy", "rollingUpdate", "maxUnavailable"}
	if strategy, _, _ := unstructured.NestedString(u.Object, "spec", "strategy", "type"); strategy == "Recreate" {
		return nil
	}
	most, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil {
		return err
	}
	pods, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	if !found {
		pods = 1
	}
	if n, ok := most.(int64); most == "100%" || ok && n >= pods {
		return nil
	}
	return unstructured.SetNestedField(u.Object, "100%", path...)
}

// SetContainer changes a field of the first container of a pod's specification.
func SetContainer(spec map[string]any, field string, value any) error {
	list, _, err := unstructured.NestedSlice(spec, "containers")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(list[0].(map[string]any), value, field); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(spec, list, "containers")
}

func (f *redeployed) Inject(ctx context.Context, e *Env) error { return apply(ctx, e, f.wrong) }

func (f *redeployed) Manifest(ctx context.Context, e *Env) (string, error) {
	return health(ctx, e, f.right.GetName())
}

func (f *redeployed) Recover(ctx context.Context, e *Env) error { return apply(ctx, e, f.right) }
