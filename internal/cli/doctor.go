package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/session"
)

func newDoctor(s *State) *cobra.Command {
	var on cloudFlags
	var name, output string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Tell whether the lab works on this machine, or on a cluster that you have",
		Long: `Tell whether the lab works on this machine, or with --cloud kubeconfig on a
cluster that you have: its version, your rights, other people's workloads, room
for the applications, storage, images, metrics, network policies, Chaos Mesh.

Nothing is changed. Each finding is a line that says what to do about it: a
problem keeps the lab from working, a warning is something that will be missing
or that cannot be known. The exit status is 1 if there is a problem.`,
		Example: `  aiopslab doctor
  aiopslab doctor --cloud kubeconfig
  aiopslab doctor --cloud kubeconfig --context kind-lab --app hotel-reservation`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			findings, err := diagnose(c.Context(), s, &on, name)
			if err != nil {
				return err
			}
			if err := listFindings(findings).print(s.Stdout, output); err != nil {
				return err
			}
			return ailing(findings)
		},
	}
	on.add(c)
	on.addImages(c, s)
	c.Flags().StringVar(&name, "app", "",
		"look whether the cluster has what this application `name`d by 'aiopslab apps' needs (default what any does)")
	completeFlag(c, "app", s.appNames)
	outputFlag(c, &output, dataFormats...)
	return c
}

// diagnose examines what the flags name.
func diagnose(ctx context.Context, s *State, on *cloudFlags, name string) ([]kube.Finding, error) {
	if _, err := on.options(); err != nil {
		return nil, err
	}
	if !on.onCluster() {
		if name != "" {
			return nil, fail(ExitUsage, errors.New("--app says what a cluster must have room for"),
				"The embedded cloud has it for every application: leave it out, or add --cloud kubeconfig.")
		}
		return examineMachine(s, os.DirFS("/")), nil
	}
	need, err := needOf(s, name)
	if err != nil {
		return nil, err
	}
	c, err := on.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Examine(ctx, need), nil
}

// needOf is what an application needs with its telemetry; if none is named, what the biggest does, and the images and
// namespaces of all.
func needOf(s *State, name string) (need kube.Need, err error) {
	var all []*app.App
	if name == "" {
		all, err = s.apps()
	} else {
		all = make([]*app.App, 1)
		all[0], err = findApp(s, name)
	}
	if err != nil {
		return need, err
	}
	most := 0
	for _, a := range all {
		objects, err := manifest.Read(a.Manifests)
		if err != nil {
			return need, fmt.Errorf("the manifests of %s: %w", a.Name, err)
		}
		need.Namespaces = append(need.Namespaces, a.Namespace)
		need.Apps = append(need.Apps, kube.App{Name: a.Name, Objects: objects})
		if len(a.Services) > most {
			most, need.Objects = len(a.Services), objects
		}
	}
	telemetry, err := manifest.Read(observe.Manifests())
	if err != nil {
		return need, err
	}
	if s.registry != "" {
		if err := manifest.Under(s.registry, telemetry); err != nil {
			return need, err
		}
	}
	load, err := session.LoadImage(s.registry)
	if err != nil {
		return need, err
	}
	need.Images = append(need.Images, load)
	need.Objects = append(need.Objects, telemetry...)
	need.Namespaces = append(need.Namespaces, observe.Namespace)
	return need, nil
}

func listFindings(findings []kube.Finding) list[kube.Finding] {
	return list[kube.Finding]{
		rows: findings, header: "LEVEL\tCHECK\tFINDING", name: func(f kube.Finding) string { return f.Check },
		line: func(f kube.Finding) string {
			text := oneLine(f.Text)
			if f.Do != "" {
				text += ". " + oneLine(f.Do)
			}
			return fmt.Sprintf("%s\t%s\t%s", f.Level, f.Check, text)
		},
	}
}

// ailing is the error of a diagnosis that has problems.
func ailing(findings []kube.Finding) error {
	var checks []string
	for _, f := range kube.Problems(findings) {
		checks = append(checks, f.Check)
	}
	if len(checks) == 0 {
		return nil
	}
	return fail(ExitError, fmt.Errorf("the lab does not work here: %d %s (%s)", len(checks),
		plural(len(checks), "problem"), strings.Join(checks, ", ")), "")
}
