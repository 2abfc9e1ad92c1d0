package fault

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/internal/term"
)

type assignParams struct {
	Node string `yaml:"node" doc:"the name of the node that does not exist"`
}

// Validate implements the check of parameters.
func (p assignParams) Validate() error {
	if p.Node == "" {
		return errors.New(`"node" must not be empty`)
	}
	return nil
}

func assignToNonExistentNode() *Kind {
	return Define(Kind{
		Name:  "assign_to_non_existent_node",
		Title: "The pods of a service must run on a node that does not exist",
		Description: `A Deployment or StatefulSet gets a node selector for a node that is not there. Its pods stay Pending, and whoever calls
the service is refused. An operator removes the selector.`,
		Cause:     Cause{term.Virtualization, term.DependencyProblem},
		Targets:   deployed,
		TrueFixes: RollBackFixes,
	}, assignParams{Node: "extra-node"}, func(t Target, p assignParams) (Fault, error) {
		f, err := redeploy(t, func(spec map[string]any) error {
			return unstructured.SetNestedField(spec, p.Node, "nodeSelector", v1.LabelHostname)
		})
		if err != nil {
			return nil, err
		}
		return &unschedulable{f}, nil
	}, func(t Target, _ assignParams) []string {
		return append([]string{fmt.Sprintf(
			`kubectl patch %s --type=json -p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'`,
			ref(t.App, t.Service))}, renewed(t)...)
	})
}

// unschedulable is a workload whose pods no node takes.
type unschedulable struct{ *redeployed }
