package fault

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

// faultyBuilds are images with a bug, by the command of the service they are a build of.
var faultyBuilds = map[string]string{"geo": "yinfangchen/geo:app3"}

// Builds are the images with a bug that faults use.
func Builds() []string { return slices.Sorted(maps.Values(faultyBuilds)) }

type misconfigAppParams struct {
	Image string `yaml:"image" doc:"the image; by default the faulty build of the service"`
}

func misconfigApp() *Kind {
	return Define(Kind{
		Name:  "misconfig_app",
		Title: "A service runs a build with a bug",
		Description: `The image of a service is replaced by a faulty build of it: yinfangchen/geo:app3 looks for its database on
a port that nobody listens on. The service waits for its database, gives up and starts again; it never
becomes ready. An operator goes back to the image before.`,
		Cause:     Cause{term.Application, term.Misconfiguration},
		TrueFixes: RollBackFixes,
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool { return faultyBuilds[commandOf(a, s.Name)] != "" })
		},
	}, misconfigAppParams{}, func(t Target, p misconfigAppParams) (Fault, error) {
		if p.Image == "" {
			p.Image = faultyBuilds[commandOf(t.App, t.Service)]
		}
		image := t.App.Image(p.Image)
		return Redeploy(t, func(spec map[string]any) error { return SetContainer(spec, "image", image) })
	}, func(t Target, _ misconfigAppParams) []string {
		o, err := read(t.App)
		if err != nil {
			return nil
		}
		c := o.containers(t.Service)[0]
		return []string{
			fmt.Sprintf("kubectl set image deployment/%s %s=%s", t.Service, c.Name, c.Image),
			rollout(t.App, t.Service),
		}
	})
}
