package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
)

func newReplay(s *State) *cobra.Command {
	var in string
	speed := 1.0
	var whole bool
	c := &cobra.Command{
		Use:   "replay RUN",
		Short: "Play the transcript of a run back",
		Long: `Play the transcript of a run back from its record, as 'aiopslab run' showed it,
in the time that it took. --speed 10 is ten times as fast, and --speed 0 shows
all at once, as it is where standard output is not a terminal.

` + runUsage,
		Example: `  aiopslab replay 20261117-1618
  aiopslab replay results/20261117-161813-1fbb18155c3c.jsonl --speed 20
  aiopslab replay 20261117-1618 --verbose > transcript.txt`,
		Args: oneArg("a run"),
		RunE: func(c *cobra.Command, args []string) error {
			if speed < 0 || math.IsNaN(speed) || math.IsInf(speed, 0) {
				return fail(ExitUsage, fmt.Errorf("--speed %v: want 0 or more, such as 10", speed), "")
			}
			file, err := findRun(args[0], in)
			if err != nil {
				return err
			}
			run, err := readRun(file)
			if err != nil {
				return err
			}
			t := newTranscript(s.Stdout, screenOf(s, s.Stdout, s.OutTerminal))
			if whole {
				t.detail = verbose
			}
			if !s.OutTerminal {
				speed = 0
			}
			return run.replay(c.Context(), t, speed, time.After)
		},
	}
	c.Flags().Float64Var(&speed, "speed", 1, "how many times as `fast` as it was; 0 is at once")
	c.Flags().BoolVarP(&whole, "verbose", "v", false, "print commands and what they print in full")
	inFlag(c, &in)
	return c
}

// replay tells a transcript of the run, with the pauses that there were. After is the clock.
func (r *oneRun) replay(ctx context.Context, t *transcript, speed float64,
	after func(time.Duration) <-chan time.Time,
) error {
	at := r.Begun
	t.start, t.now = at, func() time.Time { return at }
	t.head(r)
	for _, e := range r.events {
		if pause := e.Time.Sub(at); speed > 0 && pause > 0 {
			select {
			case <-after(time.Duration(float64(pause) / speed)):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		at = e.Time
		t.event(e.Kind, e.data)
	}
	t.end(r.outcome)
	return nil
}

// head tells which run it is.
func (t *transcript) head(r *oneRun) {
	fmt.Fprintf(t.w, "%s  %s by %s\n", t.paint(bold, cmp.Or(r.Problem, r.ID)), visible(cmp.Or(r.Task, "a run")),
		visible(r.Contestant()))
}
