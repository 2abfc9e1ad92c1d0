package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// newCampaign is what the pods of a campaign run. What they are for is told to them by who has started the campaign.
func newCampaign(s *State) *cobra.Command {
	c := &cobra.Command{Use: "campaign", Short: "Be a pod of a campaign", Hidden: true, Args: noArgs}
	for name, p := range map[string]kit.Program{
		"run": campaign.Worker{Run: s.runInPod}.Main, "keep": campaign.Keeper,
	} {
		c.AddCommand(&cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(c *cobra.Command, args []string) error { return s.runProgram(c.Context(), p, c.Name(), args) },
		})
	}
	return c
}

// runProgram runs a program of a container in this process.
func (s *State) runProgram(ctx context.Context, p kit.Program, name string, args []string) error {
	keepMemory()
	env := kit.HostEnv()
	for _, variable := range os.Environ() { // What opens the store is nothing to the runs, nor to their agents.
		if name, _, _ := strings.Cut(variable, "="); private(variable) {
			_ = os.Unsetenv(name)
		}
	}
	env.Args, env.Stdout, env.Stderr = append([]string{name}, args...), s.Stdout, s.Stderr
	if code := kit.RunHost(ctx, p, env); code != ExitOK {
		return exitStatus(code)
	}
	return nil
}

// runInPod does one run of a campaign, in a process of its own as on one machine. If the environment fails it is the
// Job that tries it again, on another node perhaps.
func (s *State) runInPod(ctx context.Context, env *kit.Env, plan *campaign.Plan, r local.Run,
) (left campaign.Leavings, err error) {
	dir, err := os.MkdirTemp(tempDir(s), "campaign-")
	if err != nil {
		return left, err
	}
	defer os.RemoveAll(dir)
	x, err := problemOfPlan(s, plan, r.Problem, dir)
	if err != nil {
		return left, campaign.BadInput(err)
	}
	p := newPool(s, filepath.Join(dir, "runs"), []*problem.Problem{x})
	p.args, p.log.w, p.env = append(p.args, plan.Args...), s.Stderr, campaign.ModelVariables(env)
	c := &local.Campaign{Runs: []local.Run{r}, Workers: 1}
	file := ""
	c.Ended = func(_ *local.Try, r *local.Result) {
		if r != nil {
			file = r.Record
		}
	}
	if _, err := p.run(ctx, s, c, func(string) {}); err != nil {
		return left, err
	}
	if left.Record, err = os.ReadFile(file); err == nil && plan.Telemetry {
		left.Telemetry, err = campaign.Pack(session.TelemetryDir(file))
	}
	return left, err
}

// problemOfPlan is a problem of the program, or of a document of the plan, which is written into dir.
func problemOfPlan(s *State, plan *campaign.Plan, id, dir string) (*problem.Problem, error) {
	l, err := s.library()
	if err != nil {
		return nil, err
	}
	for i, text := range plan.Documents {
		file := filepath.Join(dir, fmt.Sprintf("problem-%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		list, err := l.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if p.ID == id {
				return p, nil
			}
		}
	}
	return findProblem(s, id, "")
}
