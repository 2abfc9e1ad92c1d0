package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/internal/bench/toll"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// hotelTen are ten problems of one application.
const hotelTen = firstOfTen + ",misconfig_app_hotel_res-detection-1-healthy," +
	"misconfig_app_hotel_res-localization-1,misconfig_app_hotel_res-mitigation-1," +
	"revoke_auth_mongodb-detection-1,revoke_auth_mongodb-localization-1,revoke_auth_mongodb-mitigation-1," +
	"user_unregistered_mongodb-detection-1,user_unregistered_mongodb-localization-1," +
	"user_unregistered_mongodb-mitigation-1"

// How environments of a campaign's runs come about: made where nothing is kept, as nobody has them but the first;
// fresh, as users have them, whose worlds are kept; and reset.
const (
	fromNothing = "from nothing"
	byFresh     = "fresh"
	byReset     = "reset"
)

const (
	firstOfTen = "misconfig_app_hotel_res-detection-1"
	// resetTarget is how many times as many problems an hour there should be if environments are reset as if each run
	// has a fresh one, and speedUpTarget as many with two runs at a time as with one.
	resetTarget   = 1.5
	speedUpTarget = 1.6
	// someWithoutResult is the exit status of a campaign some of whose runs have no result that counts.
	someWithoutResult = 5
	// killedRuns is the length of the campaign in which processes are killed, and kills how many of them.
	killedRuns = 100
	kills      = 50
	// minLife and maxLife are for how long nobody is killed.
	minLife, maxLife = 2 * time.Second, 20 * time.Second
	// lookInterval is how often the runs are looked at that are finished.
	lookInterval = time.Second / 2
	// moreTries is how many campaigns follow, for the runs that are left, when nobody is killed any more.
	moreTries = 3
	// quietTime is how long runs may take to end whose campaign was killed.
	quietTime = 5 * time.Minute
)

// oracles is the command of a campaign with the oracle.
func (r *run) oracles(ctx context.Context, suite, dir, worlds string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, append([]string{
		"bench", "--agent", "oracle", "--suite", suite, "--noise", "none", "--results", dir, "--quiet", "-o", "json",
	}, args...)...)
	cmd.Env = append(os.Environ(), "AIOPSLAB_WORLDS="+worlds)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// worlds is where worlds are kept, for all themes that have campaigns.
func (r *run) worlds() string { return filepath.Join(r.dir, "worlds") }

// benchCampaign has the oracle solve problems: each in an environment from nothing, in a fresh one, and in one that is
// reset. The ten of one application are also solved one and two at a time.
func benchCampaign(ctx context.Context, r *run) error {
	suite, what := hotelTen, "campaign"
	if r.suite != "" {
		what += " of " + r.suite
		var err error
		if suite, err = r.withoutShifts(ctx, r.suite); err != nil {
			return err
		}
	}
	rates := map[string]float64{}
	for _, way := range []struct{ name, worlds, isolation string }{
		{fromNothing, "off", record.IsolatedFresh},
		{byFresh, r.worlds(), record.IsolatedFresh},
		{byReset, r.worlds(), record.IsolatedReset},
	} {
		p, err := r.solve(ctx, suite, way.name, way.worlds, "--isolation", way.isolation)
		if err == nil && way.name == fromNothing {
			err = r.keepWorlds(ctx, r.campaignDir(way.name)) // For the ways that come.
		}
		if err != nil {
			return err
		}
		rates[way.name] = p.rate
		r.report(measure.Row{
			What: what + ": problems an hour, environments " + way.name, Value: measure.Of("", p.rate),
		})
		r.report(measure.Row{
			What: what + ": CPU of a run, environments " + way.name, Value: measure.Of("s", p.cpu),
		})
	}
	r.report(measure.Row{
		What:  what + ": problems an hour, reset against fresh (as users have it, worlds kept)",
		Value: measure.Of("", rates[byReset]/rates[byFresh]), Target: measure.AtLeast(resetTarget),
	})
	r.report(measure.Row{
		What:  what + ": problems an hour, reset against from nothing (no world kept)",
		Value: measure.Of("", rates[byReset]/rates[fromNothing]),
	})
	return benchSpeedUp(ctx, r)
}

// benchSpeedUp has the oracle solve ten problems one at a time, and two at a time.
func benchSpeedUp(ctx context.Context, r *run) error {
	if err := r.keepWorld(ctx, firstOfTen); err != nil {
		return err
	}
	one, err := r.solve(ctx, hotelTen, "one at a time", r.worlds(), "-j", "1")
	if err != nil {
		return err
	}
	two, err := r.solve(ctx, hotelTen, "two at a time", r.worlds(), "-j", "2")
	if err != nil {
		return err
	}
	r.report(measure.Row{What: "campaign: problems an hour, -j 1", Value: measure.Of("", one.rate)})
	r.report(measure.Row{
		What: "campaign: speed-up of -j 2 over -j 1", Value: measure.Of("", two.rate/one.rate),
		Target: measure.AtLeast(speedUpTarget),
	})
	return nil
}

// keepWorlds keeps a world of each application of a campaign: by the shortest of its runs, done once more.
func (r *run) keepWorlds(ctx context.Context, campaign string) error {
	x, err := index.Open(campaign, index.Options{})
	if err != nil {
		return err
	}
	shortest := map[string]index.Run{} // by the application
	for _, one := range x.Runs {
		s, ok := shortest[one.App]
		counts := one.Class == string(session.Solved) || one.Class == string(session.AgentFailed)
		if counts && (!ok || one.Ended.Sub(one.Begun) < s.Ended.Sub(s.Begun)) {
			shortest[one.App] = one
		}
	}
	for _, app := range slices.Sorted(maps.Keys(shortest)) {
		if err := r.keepWorld(ctx, shortest[app].Problem); err != nil {
			return err
		}
	}
	return nil
}

// keepWorld keeps a world of a problem's application, if there is none yet.
func (r *run) keepWorld(ctx context.Context, problem string) error {
	_, err := r.solve(ctx, problem, "world of "+problem, r.worlds())
	return err
}

// pace is what a campaign came to: problems an hour, and seconds of a processor for each.
type pace struct{ rate, cpu float64 }

// solve has the oracle solve a suite in a campaign of a name.
func (r *run) solve(ctx context.Context, suite, name, worlds string, args ...string) (pace, error) {
	dir := r.campaignDir(name)
	cmd, start := r.oracles(ctx, suite, dir, worlds, args...), time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err != nil && cmd.ProcessState.ExitCode() != someWithoutResult {
		return pace{}, fmt.Errorf("campaign %s: %w: %s", name, err, lastLine(string(out)))
	}
	var seen toll.Seen
	if err := seen.Look(dir); err != nil {
		return pace{}, err
	}
	if seen.Runs() == 0 {
		return pace{}, fmt.Errorf("campaign %s: no run has a result that counts", name)
	}
	n := float64(seen.Runs())
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return pace{n / took.Hours(), cpu.Seconds() / n}, nil
}

// campaignDir is the folder of a campaign of a name.
func (r *run) campaignDir(name string) string {
	return filepath.Join(r.dir, "campaign-"+strings.ReplaceAll(name, " ", "-"))
}

// withoutShifts are the problems of suites, but for shifts: those last twenty minutes, whoever is on call. What is no
// suite is the id of a problem, and stays.
func (r *run) withoutShifts(ctx context.Context, suites string) (string, error) {
	var ids []string
	for suite := range strings.SplitSeq(suites, ",") {
		out, err := exec.CommandContext(ctx, r.binary, "problems", "--suite", suite, "-o", "json").Output()
		if err != nil {
			ids = append(ids, suite)
			continue
		}
		var rows []struct{ ID, Task string }
		if err := json.Unmarshal(out, &rows); err != nil {
			return "", fmt.Errorf("the problems of %s: %w", suite, err)
		}
		for _, row := range rows {
			if row.Task != string(problem.OnCall) {
				ids = append(ids, row.ID)
			}
		}
	}
	if slices.Sort(ids); len(ids) == 0 {
		return "", fmt.Errorf("-suite %s: there are shifts alone", suites)
	}
	return strings.Join(slices.Compact(ids), ","), nil
}

// benchKills has a campaign of real runs whose processes are killed at random moments, itself among them. What was
// finished must stay, and be there once; and nothing that was finished may be run again.
func benchKills(ctx context.Context, r *run) error {
	for _, isolation := range []string{record.IsolatedFresh, record.IsolatedReset} {
		start := time.Now()
		killed, t, err := r.kill(ctx, isolation)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("kills: of %d runs (%s, %d processes killed), ", killedRuns, isolation, killed)
		for _, row := range []struct {
			what string
			n    int
		}{
			{"finished and lost", t.Lost},
			{"finished and run again", t.Again},
			{"there twice", t.Twice},
			{"without a result", t.Absent},
		} {
			r.report(measure.Row{
				What: name + row.what, Value: measure.Of("", float64(row.n)), Target: measure.AtMost(0),
			})
		}
		r.report(measure.Row{What: name + "all of it", Value: measure.Of("s", time.Since(start).Seconds())})
	}
	return nil
}

// kill has a campaign whose processes are killed, until nobody is left to kill and it has ended by itself.
func (r *run) kill(ctx context.Context, isolation string) (killed int, t toll.Toll, err error) {
	dir := filepath.Join(r.dir, "killed-"+isolation)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, t, err
	}
	var seen toll.Seen
	for left := moreTries; left > 0; {
		// A run that was killed is run again as often as it takes.
		cmd := r.oracles(ctx, hotelTen, dir, r.worlds(), "-k", strconv.Itoa(killedRuns/10), "--isolation",
			isolation, "--retry", "infra")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			return killed, t, err
		}
		n, ended, err := killUntilEnd(ctx, cmd, kills-killed, func() error { return seen.Look(dir) })
		killed += n
		switch {
		case ctx.Err() != nil:
			return killed, t, ctx.Err()
		case ended && err != nil && cmd.ProcessState.ExitCode() != someWithoutResult:
			return killed, t, fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
		case ended && err == nil:
			left = 0 // Every run has a result, as far as the campaign knows.
		case ended && killed >= kills:
			left--
		}
		// Its runs see that it was killed, and end. What they finish then must not be lost either.
		if err := errors.Join(toll.Quiet(dir, quietTime), seen.Look(dir)); err != nil {
			return killed, t, err
		}
	}
	t, err = seen.Toll(dir, killedRuns)
	return killed, t, err
}

// killUntilEnd kills processes of a campaign at random moments, so many at most, until it has ended or was killed
// itself. Meanwhile it looks at the campaign again and again.
func killUntilEnd(ctx context.Context, cmd *exec.Cmd, most int, look func() error) (killed int, ended bool, err error) {
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	next := time.NewTimer(minLife + rand.N(maxLife-minLife))
	defer next.Stop()
	for {
		select {
		case err := <-gone:
			return killed, true, err
		case <-ctx.Done():
			return killed, true, errors.Join(<-gone, ctx.Err())
		case <-looks.C:
			if err := look(); err != nil {
				_ = cmd.Process.Kill()
				<-gone
				return killed, true, err
			}
			continue
		case <-next.C:
		}
		if killed >= most {
			continue // Nobody is killed any more.
		}
		next.Reset(minLife + rand.N(maxLife-minLife))
		all := append([]int{cmd.Process.Pid}, descendants(cmd.Process.Pid)...)
		victim := all[rand.IntN(len(all))]
		p, err := os.FindProcess(victim)
		if err != nil || p.Kill() != nil {
			continue // It has just ended by itself.
		}
		killed++
		if victim == cmd.Process.Pid {
			<-gone
			return killed, false, nil
		}
	}
}

// descendants are the processes that a process has started, and those that these have.
func descendants(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = slices.Concat(list, []int{child}, descendants(child))
			}
		}
	}
	return list
}
