package fault

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/internal/term"
)

func scalePodsToZero() *Kind {
	return Define(Kind{
		Name:  "scale_pods_to_zero",
		Title: "A Deployment is scaled to zero",
		Description: `A Deployment or StatefulSet is scaled to zero replicas: it has no pods, and whoever calls the service is refused. An
operator scales it up again.`,
		Cause:   Cause{term.Virtualization, term.OperationError},
		Targets: deployed,
	}, none{}, func(t Target, _ none) (Fault, error) {
		o, err := read(t.App)
		if err != nil {
			return nil, err
		}
		d, err := o.object(t.App, cmp.Or(o.controller(t.Service).kind, "Deployment"), t.Service)
		return &scaled{d}, err
	}, func(t Target, _ none) []string {
		replicas := int32(1)
		if o, err := read(t.App); err == nil {
			if r := o.controller(t.Service).replicas; r != nil {
				replicas = *r
			}
		}
		return []string{
			fmt.Sprintf("kubectl scale %s --replicas=%d", ref(t.App, t.Service), replicas),
			rollout(t.App, t.Service),
		}
	})
}

// scaled is a workload without pods.
type scaled struct{ right *unstructured.Unstructured }

func (f *scaled) Inject(ctx context.Context, e *Env) error { return scale(ctx, e, f.right, 0) }

func (f *scaled) Manifest(ctx context.Context, e *Env) (string, error) {
	return health(ctx, e, f.right.GetName())
}

func (f *scaled) Recover(ctx context.Context, e *Env) error { return apply(ctx, e, f.right) }
