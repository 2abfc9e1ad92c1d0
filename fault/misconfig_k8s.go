package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

type misconfigParams struct {
	Port      int `yaml:"port" doc:"the port that the Service sends to instead of the right one"`
	InsteadOf int `yaml:"instead_of" doc:"the target port that is changed; 0 is each of them"`
}

// Validate implements the check of parameters.
func (p misconfigParams) Validate() error {
	if p.Port < 1 || p.Port > 65535 || p.InsteadOf < 0 || p.InsteadOf > 65535 {
		return errors.New(`"port" must be between 1 and 65535, and "instead_of" too unless it is 0`)
	}
	if p.Port == p.InsteadOf {
		return errors.New(`"port" must be another than "instead_of"`)
	}
	return nil
}

func misconfigK8s() *Kind {
	return Define(Kind{
		Name:  "misconfig_k8s",
		Title: "A Service sends to a port that nobody listens on",
		Description: `The target port of a Kubernetes Service is changed to one on which its pods do not listen, and the pods
are replaced, so that nobody keeps a connection from before. The pods are well, but whoever connects
through the Service is refused. An operator sets the target port right.`,
		Cause:   Cause{term.Virtualization, term.Misconfiguration},
		Targets: reachedByService,
	}, misconfigParams{Port: 9999}, bindMisconfig, func(t Target, p misconfigParams) []string {
		f, err := bindMisconfig(t, p)
		if err != nil {
			return nil
		}
		m := f.(*misconfigured)
		var commands []string
		for _, c := range m.changes {
			right, _ := json.Marshal(c.right) // a number or a name
			commands = append(commands, fmt.Sprintf(
				`kubectl patch service %s --type=json -p '[{"op": "replace", "path": "/spec/ports/%d/targetPort", "value": %s}]'`, t.Service, c.index, right))
		}
		return commands
	})
}

// reachedByService are the services that are reached through their Kubernetes Service. Where Consul
// tells where others are, they are reached at their pods' addresses.
func reachedByService(a *app.App) []string {
	_, consul := a.Service("consul")
	o, err := read(a)
	if err != nil {
		return nil
	}
	return services(a, func(s app.Service) bool {
		if svc := o.service(s.Name); svc.Name == "" || svc.Spec.ClusterIP == v1.ClusterIPNone {
			return false // It has none, or one that an operator would put right, or one that is only names.
		}
		return !consul || s.Kind != "service" || s.Name == a.Frontend.Service
	})
}

func bindMisconfig(t Target, p misconfigParams) (Fault, error) {
	o, err := read(t.App)
	if err != nil {
		return nil, err
	}
	right, err := o.object(t.App, "Service", t.Service)
	if err != nil {
		return nil, err
	}
	f := &misconfigured{service: t.Service, right: right, wrong: right.DeepCopy()}
	ports, _, _ := unstructured.NestedSlice(f.wrong.Object, "spec", "ports")
	for i, x := range ports {
		port, ok := x.(map[string]any)
		if !ok {
			continue
		}
		target := port["targetPort"]
		if target == nil {
			target = port["port"]
		}
		if target == int64(p.Port) || p.InsteadOf != 0 && target != int64(p.InsteadOf) {
			continue
		}
		port["targetPort"] = int64(p.Port)
		f.changes = append(f.changes, portChange{i, target})
	}
	if len(f.changes) == 0 {
		return nil, fmt.Errorf("misconfig_k8s: the Service %s has no target port %d to change to %d", t.Service,
			p.InsteadOf, p.Port)
	}
	return f, unstructured.SetNestedSlice(f.wrong.Object, ports, "spec", "ports")
}

// misconfigured is a Service with a wrong target port.
type misconfigured struct {
	service      string
	right, wrong *unstructured.Unstructured
	changes      []portChange
}

type portChange struct {
	index int
	right any // a number, or the name of a container's port
}

func (f *misconfigured) Inject(ctx context.Context, e *Env) error {
	if err := apply(ctx, e, f.wrong); err != nil {
		return err
	}
	if err := deletePods(ctx, e, f.service); err != nil {
		return err
	}
	return awaitReady(ctx, e, f.service)
}

// Manifest asks first, since the pods are well.
func (f *misconfigured) Manifest(ctx context.Context, e *Env) (string, error) {
	if err := ask(ctx, e, f.service, askTimeout); err != nil {
		return fmt.Sprintf("%s does not answer: %v", f.service, err), ctx.Err()
	}
	return health(ctx, e, f.service)
}

func (f *misconfigured) Recover(ctx context.Context, e *Env) error { return apply(ctx, e, f.right) }
