package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// addLength adds the flags for how long a shift lasts, and how many users come.
func (f *runFlags) addLength(c *cobra.Command) {
	c.Flags().DurationVar(&f.length, "length", 0, "how long a shift lasts, if that is not what its document says")
	c.Flags().BoolVar(&f.day, "day", false, "have as many users come during a shift as on a whole day, from one "+
		"afternoon to the next")
}

// lasting is the problem with the length and the day that are asked for. The runs of a campaign have the length whether
// or not they are shifts.
func (f *runFlags) lasting(p *problem.Problem) (*problem.Problem, error) {
	if f.day {
		over, err := p.OverADay()
		if err != nil {
			return nil, fail(ExitUsage, fmt.Errorf("--day: %w", err), "")
		}
		p = over
	}
	switch {
	case f.length == 0, p.Task != problem.OnCall && f.partOf != "":
		return p, nil
	case p.Task != problem.OnCall:
		return nil, fail(ExitUsage, fmt.Errorf("--length %v: %s is no shift", f.length, p.ID), "")
	case f.length < problem.MinShift || f.length > problem.MaxShift:
		return nil, fail(ExitUsage, fmt.Errorf("--length %v: a shift is from %v to %v", f.length, problem.MinShift,
			problem.MaxShift), "")
	}
	return p.Lasting(f.length), nil
}

// defaultShift is whose shift it is if nobody says.
const defaultShift = "hotel-reservation"

func newShift(s *State) *cobra.Command {
	f := &runFlags{time: session.DefaultTime}
	c := &cobra.Command{
		Use:   "shift [NAME]",
		Short: "Have an agent on call for a while, and score the shift",
		Long: `Have an agent on call for an application: incidents come, alone and overlapping,
harmless changes go on between them, and a pager calls, sometimes by mistake.
The agent is told what the pager says and no more. One score says how the shift
went: users' minutes lost, pages answered, incidents mended, harm done, cost.

NAME is an application that has a shift, the id of a shift that
'aiopslab problems --task shift' lists, or a YAML file; without one it is
` + defaultShift + `. What comes and when is drawn from the seed. A shorter shift
has the same in less time, and fewer incidents. With --day, as many users come
as on a whole day. Time is real. docs/shifts.md tells more.`,
		Example: `  aiopslab shift hotel-reservation --agent runbook --length 5m
  aiopslab shift social-network --agent tools --model openai/gpt-5 --length 20m --seed 7
  aiopslab shift hotel-reservation --day --length 24m
  aiopslab report --task shift`,
		Args: atMostOne("an application or a document"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := shiftID(s, args)
			if err != nil {
				return err
			}
			f.task = string(problem.OnCall)
			p, err := f.problem(s, id)
			if err != nil {
				return err
			}
			program := strings.HasPrefix(f.agent, external.Prefix)
			if err := f.cage.check(program); err != nil {
				return err
			}
			a, err := findAgent(s, f.agent, f.cageOf(s, p))
			if err != nil {
				return err
			}
			f.blind = program // It may find what is printed, in a file.
			return runProblem(c.Context(), s, f, p, a)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.agent, "agent", defaultAgent, "who is on call: a `name` of 'aiopslab agents', or exec:COMMAND")
	completeFlag(c, "agent", func() []string { return agentNames(s) })
	f.addLength(c)
	flags.IntVar(&f.steps, "max-steps", session.DefaultSteps,
		"how many steps the agent has from one answer to the next")
	flags.Uint64Var(&f.seed, "seed", 0,
		"what is left to chance is drawn from this `number`; by default $"+seedVariable+", or a new one for each run")
	f.noise.add(c)
	f.policy.add(c)
	flags.StringVar(&f.results, "results", defaultResults, "`directory` of the records")
	f.cage.add(c)
	f.models.add(c)
	f.cloud.add(c)
	f.cloud.addIKnow(c)
	f.cloud.addImages(c, s)
	f.cloud.addLoadFrom(c)
	f.cloud.addPast(c)
	f.memory.add(c)
	outputFlag(c, &f.output, dataFormats...)
	f.addDetail(c)
	completeArgs(c, func() []string { return shiftApps(s) }, true, true)
	return c
}

// shiftID is the id or the file of the shift that is meant.
func shiftID(s *State, args []string) (string, error) {
	name := defaultShift
	if len(args) > 0 {
		name = args[0]
	}
	l, err := s.library()
	if err != nil {
		return "", err
	}
	for _, p := range l.Problems {
		if p.Task == problem.OnCall && p.App.Name == name {
			return p.ID, nil
		}
	}
	if slices.Contains(s.appNames(), name) {
		return "", fail(ExitUsage, fmt.Errorf("%s has no shift", name),
			"There are shifts of "+strings.Join(shiftApps(s), ", ")+"; docs/shifts.md says how to write one.")
	}
	if p, err := l.Find(name); err == nil && p.Task != problem.OnCall {
		return "", fail(ExitUsage, fmt.Errorf("%s is no shift", name), "Run 'aiopslab run "+name+"' instead.")
	}
	return name, nil
}

// shiftApps are the applications that have shifts.
func shiftApps(s *State) (names []string) {
	l, err := s.library()
	if err != nil {
		return nil
	}
	for _, p := range l.Problems {
		if p.Task == problem.OnCall && !slices.Contains(names, p.App.Name) {
			names = append(names, p.App.Name)
		}
	}
	return names
}

// verifiedShift is how long a shift lasts that is proved.
const verifiedShift = 4 * time.Minute
