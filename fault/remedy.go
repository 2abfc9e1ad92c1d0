package fault

import (
	"context"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/app"
)

// The blunt remedies: what an agent may try that understands nothing.
const (
	RestartEverything  = "restart-everything"   // rollout restart of all Deployments and StatefulSets
	RollBackEverything = "roll-back-everything" // rollout undo of all Deployments
	ScaleToZero        = "scale-to-zero"        // of the faulty workload
	DeleteTheWorkload  = "delete-the-workload"
	LimitsToInfinity   = "limits-to-infinity" // no resource limits on any Deployment or StatefulSet
	SilenceTheAlerts   = "silence-the-alerts" // no alerting rules
)

// Remedies are all blunt remedies.
var Remedies = []string{
	RestartEverything, RollBackEverything, ScaleToZero, DeleteTheWorkload, LimitsToInfinity,
	SilenceTheAlerts,
}

// rollout is a command that waits until a service runs as it should.
func rollout(a *app.App, service string) string {
	return fmt.Sprintf("kubectl rollout status %s --timeout=60s", ref(a, service))
}

// restart are commands that make the pods of services anew, so that they do not wait for their
// back-off to end, and wait for them.
func restart(t Target, services []string) []string {
	commands := []string{fmt.Sprintf("kubectl delete pod -l '%s in (%s)' --wait=false", t.App.Label,
		strings.Join(services, ", "))}
	for _, s := range services {
		commands = append(commands, rollout(t.App, s))
	}
	return commands
}

// restartUnready deletes the pods of services that are not ready, so that they do not wait for their
// back-off to end.
func restartUnready(ctx context.Context, e *Env, services ...string) error {
	for _, s := range services {
		symptom, err := podSymptom(ctx, e, s)
		if err != nil {
			return err
		}
		if symptom != "" {
			if err := deletePods(ctx, e, s); err != nil {
				return err
			}
		}
	}
	return nil
}
