package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

type wrongBinParams struct {
	Binary string `yaml:"binary" doc:"the command that runs instead of the right one; by default that of another service of the image"`
}

func wrongBinUsage() *Kind {
	return Define(Kind{
		Name:  "wrong_bin_usage",
		Title: "The container of a service runs another service's program",
		Description: `An image that has the programs of several services is started with the command of another one. The
program runs, but listens on its own port: the pods never become ready, and whoever calls the service
is refused. An operator sets the command right.`,
		Cause:     Cause{term.Application, term.Misconfiguration},
		TrueFixes: RollBackFixes,
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool { return len(otherBinaries(a, s.Name)) > 0 })
		},
	}, wrongBinParams{}, func(t Target, p wrongBinParams) (Fault, error) {
		others := otherBinaries(t.App, t.Service)
		if p.Binary == "" {
			p.Binary = others[0]
		}
		if !slices.Contains(others, p.Binary) {
			return nil, fmt.Errorf("wrong_bin_usage: parameter \"binary\": %q is no command that %s could run by "+
				"mistake; there are %s", p.Binary, t.Service, strings.Join(others, ", "))
		}
		return Redeploy(t, func(spec map[string]any) error { return SetContainer(spec, "command", []any{p.Binary}) })
	}, func(t Target, _ wrongBinParams) []string {
		return append([]string{fmt.Sprintf(
			`kubectl patch %s --type=json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/command", "value": [%q]}]'`,
			ref(t.App, t.Service), commandOf(t.App, t.Service))}, renewed(t)...)
	})
}

// commandOf is the command of a service's container.
func commandOf(a *app.App, service string) string {
	o, _ := read(a)
	if c := o.containers(service); len(c) > 0 && len(c[0].Command) > 0 {
		return c[0].Command[0]
	}
	return ""
}

// otherBinaries are the commands of other services of the same image, which listen on other ports.
// One of the same port would answer the calls of another.
func otherBinaries(a *app.App, service string) (commands []string) {
	o, err := read(a)
	if err != nil {
		return nil
	}
	own := o.containers(service)
	if len(own) == 0 || len(own[0].Command) != 1 || len(own[0].Ports) == 0 {
		return nil
	}
	for _, s := range a.Services {
		c := o.containers(s.Name)
		if len(c) == 0 || c[0].Image != own[0].Image || len(c[0].Command) != 1 || len(c[0].Ports) == 0 ||
			c[0].Ports[0].ContainerPort == own[0].Ports[0].ContainerPort {
			continue
		}
		commands = append(commands, c[0].Command[0])
	}
	slices.Sort(commands)
	return commands
}
