package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

// The faults of this file are mistakes in a TidbCluster, the resource that TiDB Operator makes a cluster of. Each is
// one wrong value in the specification of one component. The API server takes it; what the operator makes of it fails.

const tidbCluster = "TidbCluster"

// tidbOperator is the Deployment of the operator.
const tidbOperator = "tidb-controller-manager"

// operated are the services of an application that an operator makes of a component of a TidbCluster.
func operated(component string) func(a *app.App) []string {
	return func(a *app.App) []string {
		o, err := read(a)
		if err != nil {
			return nil
		}
		return services(a, func(s app.Service) bool {
			cluster, ok := strings.CutSuffix(s.Name, "-"+component)
			if !ok {
				return false
			}
			_, err := o.object(a, tidbCluster, cluster)
			return err == nil
		})
	}
}

// wrongCluster is a TidbCluster with a wrong value.
type wrongCluster struct {
	right, wrong *unstructured.Unstructured
	crowded      []string // services that may get no new pods
}

// misspecify makes a fault of a change to the specification of a component.
func misspecify(t Target, component string, change func(spec map[string]any) error) (*wrongCluster, error) {
	o, err := read(t.App)
	if err != nil {
		return nil, err
	}
	right, err := o.object(t.App, tidbCluster, strings.TrimSuffix(t.Service, "-"+component))
	if err != nil {
		return nil, err
	}
	wrong := right.DeepCopy()
	spec, _, err := unstructured.NestedMap(wrong.Object, "spec", component)
	if err != nil {
		return nil, err
	}
	if err := change(spec); err != nil {
		return nil, err
	}
	return &wrongCluster{right: right, wrong: wrong}, unstructured.SetNestedMap(wrong.Object, spec, "spec", component)
}

func (f *wrongCluster) Inject(ctx context.Context, e *Env) error { return apply(ctx, e, f.wrong) }

func (f *wrongCluster) Recover(ctx context.Context, e *Env) error { return apply(ctx, e, f.right) }

// Manifest asks the operator, by the condition that it writes, then looks at what it has made: whatever makes it
// content is a fix, as long as it is there to be asked.
func (f *wrongCluster) Manifest(ctx context.Context, e *Env) (string, error) {
	c, err := custom(e, f.right)
	if err != nil {
		return "", err
	}
	now, err := c.Get(ctx, e.App.Namespace, f.right)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("there is no %s %s", tidbCluster, f.right.GetName()), nil
	}
	if err != nil {
		return "", err
	}
	if why := notReady(now); why != "" {
		return fmt.Sprintf("%s %s is not ready: %s", tidbCluster, f.right.GetName(), why), nil
	}
	list := []string{tidbOperator}
	for _, component := range []string{"pd", "tikv", "tidb"} {
		list = append(list, operated(component)(e.App)...)
	}
	return health(ctx, e, list...)
}

// notReady is why the operator says that a cluster is not ready, or "".
func notReady(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, v := range list {
		if m, _ := v.(map[string]any); m["type"] == "Ready" {
			if m["status"] == "True" {
				return ""
			}
			return fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return "it has no condition Ready"
}

// patchCluster is the command that puts a value of a component right: the one it was deployed with, or none.
func patchCluster(t Target, component, field string) []string {
	name := strings.TrimSuffix(t.Service, "-"+component)
	o, err := read(t.App)
	if err != nil {
		return nil
	}
	right, err := o.object(t.App, tidbCluster, name)
	if err != nil {
		return nil
	}
	path := "/spec/" + component + "/" + strings.ReplaceAll(field, ".", "/")
	op := fmt.Sprintf(`{"op": "remove", "path": %q}`, path)
	fields := append([]string{"spec", component}, strings.Split(field, ".")...)
	if v, ok, _ := unstructured.NestedFieldNoCopy(right.Object, fields...); ok {
		op = fmt.Sprintf(`{"op": "replace", "path": %q, "value": %v}`, path, v)
	}
	return []string{
		fmt.Sprintf("kubectl patch tidbcluster %s --type=json -p '[%s]'", name, op),
		fmt.Sprintf("kubectl wait tidbcluster/%s --for=condition=Ready --timeout=120s", name),
	}
}

type overloadParams struct {
	Replicas int `yaml:"replicas" doc:"how many TiDB servers there are to be"`
}

// Validate implements the check of parameters.
func (p overloadParams) Validate() error {
	if p.Replicas < 100 {
		return errors.New(`"replicas" must be at least 100, more than there is room for`)
	}
	return nil
}

func overloadReplicas() *Kind {
	return Define(Kind{
		Name:  "overload_replicas",
		Title: "A TidbCluster asks for far more TiDB servers than there is room for",
		Description: `The number of TiDB servers in a TidbCluster is set far too high. The operator adds one after the
other until the namespace's quota of pods is used up; then pods are refused, and nothing else in the namespace gets a
new one. An operator sets the number right.`,
		Cause:   Cause{term.Virtualization, term.OperationError},
		Targets: operated("tidb"),
	}, overloadParams{Replicas: 100000}, func(t Target, p overloadParams) (Fault, error) {
		f, err := misspecify(t, "tidb", func(spec map[string]any) error {
			spec["replicas"] = int64(p.Replicas)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, s := range t.App.Services {
			f.crowded = append(f.crowded, s.Name)
		}
		return f, nil
	}, func(t Target, _ overloadParams) []string { return patchCluster(t, "tidb", "replicas") })
}

type storageParams struct {
	Class string `yaml:"class" doc:"the storage class that does not exist"`
}

// Validate implements the check of parameters.
func (p storageParams) Validate() error {
	if p.Class == "" {
		return errors.New(`"class" must not be empty`)
	}
	return nil
}

func nonExistentStorage() *Kind {
	return Define(Kind{
		Name:  "non_existent_storage",
		Title: "A TidbCluster asks for a storage class that does not exist",
		Description: `The storage class of PD in a TidbCluster is changed to one that is not there. The operator moves
the members of PD to it, one by one: the first gets a claim that nobody provides for, and stays Pending. The others go
on, with one member less. An operator sets the class right.`,
		Cause:   Cause{term.Virtualization, term.Misconfiguration},
		Targets: operated("pd"),
	}, storageParams{Class: "ThisIsAStorageClass"}, func(t Target, p storageParams) (Fault, error) {
		return misspecified(t, "pd", func(spec map[string]any) error {
			spec["storageClassName"] = p.Class
			return nil
		})
	}, func(t Target, _ storageParams) []string { return patchCluster(t, "pd", "storageClassName") })
}

// misspecified is misspecify as a fault.
func misspecified(t Target, component string, change func(spec map[string]any) error) (Fault, error) {
	f, err := misspecify(t, component, change)
	if err != nil {
		return nil, err
	}
	return f, nil
}

type tolerationParams struct {
	Effect string `yaml:"effect" doc:"the effect of the toleration, which there is none of that name"`
}

// Validate implements the check of parameters.
func (p tolerationParams) Validate() error {
	if slices.Contains([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, p.Effect) {
		return errors.New(`"effect" must be one that Kubernetes does not have`)
	}
	return nil
}

func invalidAffinityToleration() *Kind {
	return Define(Kind{
		Name:  "invalid_affinity_toleration",
		Title: "A TidbCluster has a toleration that Kubernetes does not take",
		Description: `The TiDB servers of a TidbCluster get a toleration with an effect that does not exist. Each time that
the operator wants to change their StatefulSet, the API server refuses; the pods that there are go on, and no change
gets to them. An operator removes the toleration.`,
		Cause:   Cause{term.Virtualization, term.Misconfiguration},
		Targets: operated("tidb"),
	}, tolerationParams{Effect: "TAKE_SOME_EFFECT"}, func(t Target, p tolerationParams) (Fault, error) {
		return misspecified(t, "tidb", func(spec map[string]any) error {
			spec["tolerations"] = []any{map[string]any{
				"key": "test-keys", "operator": "Equal", "value": "test-value", "effect": p.Effect,
				"tolerationSeconds": int64(0),
			}}
			return nil
		})
	}, func(t Target, _ tolerationParams) []string { return patchCluster(t, "tidb", "tolerations") })
}

type securityParams struct {
	User int `yaml:"user" doc:"the user that the servers are to run as: a number that there is no user of"`
}

// Validate implements the check of parameters.
func (p securityParams) Validate() error {
	if p.User >= 0 {
		return errors.New(`"user" must be negative, which no user is`)
	}
	return nil
}

func securityContextFault() *Kind {
	return Define(Kind{
		Name:  "security_context_fault",
		Title: "A TidbCluster has its servers run as a user that cannot be",
		Description: `The TiDB servers of a TidbCluster are to run as a user with a negative number. Each time that the
operator wants to change their StatefulSet, the API server refuses; the pods that there are go on, and no change gets to
them. An operator sets the user right.`,
		Cause:   Cause{term.Virtualization, term.Misconfiguration},
		Targets: operated("tidb"),
	}, securityParams{User: -1}, func(t Target, p securityParams) (Fault, error) {
		return misspecified(t, "tidb", func(spec map[string]any) error {
			return unstructured.SetNestedField(spec, int64(p.User), "podSecurityContext", "runAsUser")
		})
	}, func(t Target, _ securityParams) []string {
		return patchCluster(t, "tidb", "podSecurityContext.runAsUser")
	})
}

type strategyParams struct {
	Strategy string `yaml:"strategy" doc:"the update strategy, which there is none of that name"`
}

// Validate implements the check of parameters.
func (p strategyParams) Validate() error {
	if slices.Contains([]string{"", "RollingUpdate", "OnDelete"}, p.Strategy) {
		return errors.New(`"strategy" must be one that Kubernetes does not have`)
	}
	return nil
}

func wrongUpdateStrategy() *Kind {
	return Define(Kind{
		Name:  "wrong_update_strategy",
		Title: "A TidbCluster has an update strategy that Kubernetes does not have",
		Description: `The TiDB servers of a TidbCluster get an update strategy that does not exist. Each time that the
operator wants to change their StatefulSet, the API server refuses; the pods that there are go on, and no change gets to
them. An operator removes the strategy.`,
		Cause:   Cause{term.Virtualization, term.Misconfiguration},
		Targets: operated("tidb"),
	}, strategyParams{Strategy: "SomeStrategyForUpdata"}, func(t Target, p strategyParams) (Fault, error) {
		return misspecified(t, "tidb", func(spec map[string]any) error {
			spec["statefulSetUpdateStrategy"] = p.Strategy
			return nil
		})
	}, func(t Target, _ strategyParams) []string { return patchCluster(t, "tidb", "statefulSetUpdateStrategy") })
}
