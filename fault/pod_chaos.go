package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/term"
)

// healthProbe sees a disturbance by the pods of the service and by what it answers.
func healthProbe(ctx context.Context, e *Env, service string) (string, error) {
	return settledHealth(ctx, e, killSettle, service)
}

type containerKillParams struct {
	Containers    []string `yaml:"containers" doc:"the containers that are killed; all if there are none"`
	disturbParams `yaml:",inline"`
}

func containerKill() *Kind {
	return disturbing(Kind{
		Name:  "container_kill",
		Title: "The containers of a service are killed again and again",
		Description: `The containers of a service's pods are killed with SIGKILL as soon as they run. The pods stay and restart
them, ever more slowly: CrashLoopBackOff, exit code 137. Only where it is bound to a node can an
operator help: by moving the pods off it.`,
		Cause:  Cause{term.Virtualization, term.OperationError},
		MayFix: moved,
	}, containerKillParams{}, func(p containerKillParams) disturbParams { return p.disturbParams },
		func(t Target, p containerKillParams) (cloud.Disturbance, error) {
			o, err := read(t.App)
			if err != nil {
				return cloud.Disturbance{}, err
			}
			var names []string
			for _, c := range o.containers(t.Service) {
				names = append(names, c.Name)
			}
			for _, c := range p.Containers {
				if !slices.Contains(names, c) {
					return cloud.Disturbance{},
						fmt.Errorf("\"containers\": %s has no container %q; it has %s", t.Service, c,
							strings.Join(names, ", "))
				}
			}
			return cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.ContainerKill, Containers: p.Containers}}, nil
		}, func(containerKillParams) probe { return healthProbe }, false)
}

func podFailure() *Kind {
	return podChaos(cloud.PodFailure, Kind{
		Name:  "pod_failure",
		Title: "The pods of a service do nothing",
		Description: `The pods of a service exist, but their containers do nothing but wait: nobody listens, and they are not
ready. Only where it is bound to a node can an operator help: by moving the pods off it.`,
		Cause: Cause{term.Virtualization, term.OperationError},
	})
}

func podKill() *Kind {
	return podChaos(cloud.PodKill, Kind{
		Name:  "pod_kill",
		Title: "The pods of a service are killed again and again",
		Description: `The pods of a service are deleted without grace as soon as they run, and so are those that take their
place. Only where it is bound to a node can an operator help: by moving the pods off it.`,
		Cause: Cause{term.Virtualization, term.OperationError},
	})
}

func podChaos(action cloud.PodAction, k Kind) *Kind {
	k.MayFix = moved
	return disturbing(k, disturbParams{}, func(p disturbParams) disturbParams { return p },
		func(Target, disturbParams) (cloud.Disturbance, error) {
			return cloud.Disturbance{Pod: &cloud.PodChaos{Action: action}}, nil
		}, func(disturbParams) probe { return healthProbe }, false)
}
