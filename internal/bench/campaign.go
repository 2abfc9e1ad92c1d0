package main

import (
	"bytes"
	"cmp"
	"context"
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

// How environments of a campaign's runs come about.
const (
	fromNothing = "from nothing"
	fromKept    = "from kept worlds"
	byReset     = "reset"
)

const (
	firstOfTen = "misconfig_app_hotel_res-detection-1"
	// resetTarget is how many times as many problems an hour there should be if environments are reset as if each is
	// made from nothing, and speedUpTarget as many with two runs at a time as with one.
	resetTarget   = 1.5
	speedUpTarget = 1.6
	// someWithoutResult is the exit status of a campaign some of whose runs have no result that counts.
	someWithoutResult = 5
	// killedRuns is the length of the campaign in which processes are killed, and kills how many of them.
	killedRuns = 100
	kills      = 50
	// minLife and maxLife are for how long nobody is killed.
	minLife, maxLife = 2 * time.Second, 20 * time.Second
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

// benchCampaign has the oracle solve problems: each in an environment from nothing, in one from a kept world, and in
// one that is reset. The ten of one application are also solved one and two at a time.
func benchCampaign(ctx context.Context, r *run) error {
	suite, what := cmp.Or(r.suite, hotelTen), "campaign"
	if r.suite != "" {
		what += " of " + r.suite
	}
	rates := map[string]float64{}
	for _, way := range []struct{ name, worlds, isolation string }{
		{fromNothing, "off", record.IsolatedFresh},
		{fromKept, r.worlds(), record.IsolatedFresh},
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
		What:  what + ": problems an hour, reset against from nothing",
		Value: measure.Of("", rates[byReset]/rates[fromNothing]), Target: measure.AtLeast(resetTarget),
	})
	r.report(measure.Row{
		What:  what + ": problems an hour, reset against from kept worlds",
		Value: measure.Of("", rates[byReset]/rates[fromKept]),
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
	runs, err := counted(dir)
	if err != nil {
		return pace{}, err
	}
	if len(runs) == 0 {
		return pace{}, fmt.Errorf("campaign %s: no run has a result that counts", name)
	}
	n := float64(len(runs))
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return pace{n / took.Hours(), cpu.Seconds() / n}, nil
}

// campaignDir is the folder of a campaign of a name.
func (r *run) campaignDir(name string) string {
	return filepath.Join(r.dir, "campaign-"+strings.ReplaceAll(name, " ", "-"))
}

// counted are the records in a campaign's folder that say something of the agent, by the run that they are of.
func counted(dir string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	list := map[string][]string{}
	for _, file := range files {
		rec, err := record.Read(file)
		if err != nil {
			return nil, err
		}
		for _, e := range rec.Events {
			var v session.Verdict
			if e.Kind != record.VerdictEvent {
				continue
			}
			if err := e.Decode(&v); err != nil {
				return nil, err
			}
			if v.Class == session.Solved || v.Class == session.AgentFailed {
				key := fmt.Sprint(rec.Problem, " ", rec.Seed)
				list[key] = append(list[key], filepath.Base(file))
			}
		}
	}
	return list, nil
}

// benchKills has a campaign of real runs whose processes are killed at random moments, itself among them. What was
// finished must stay, and be there once.
func benchKills(ctx context.Context, r *run) error {
	for _, isolation := range []string{record.IsolatedFresh, record.IsolatedReset} {
		dir := filepath.Join(r.dir, "killed-"+isolation)
		killed, finished := 0, map[string]bool{}
		lost, start := map[string]bool{}, time.Now()
		for over := false; !over; {
			// A run that was killed is run again as often as it takes.
			cmd := r.oracles(ctx, hotelTen, dir, r.worlds(), "-k", strconv.Itoa(killedRuns/10), "--isolation",
				isolation, "--retry", "infra")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				return err
			}
			n, ended, err := killUntilEnd(ctx, cmd, kills-killed)
			if killed += n; ended && err != nil && cmd.ProcessState.ExitCode() != someWithoutResult {
				return fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
			}
			now, err := counted(dir)
			if err != nil {
				return err
			}
			there := map[string]bool{}
			for _, files := range now {
				for _, f := range files {
					there[f] = true
				}
			}
			for f := range finished {
				if !there[f] {
					lost[f] = true
				}
			}
			finished = there
			over = len(now) == killedRuns || ctx.Err() != nil
		}
		now, err := counted(dir)
		if err != nil {
			return err
		}
		twice := 0
		for _, files := range now {
			twice += len(files) - 1
		}
		name := fmt.Sprintf("kills: of %d runs (%s, %d processes killed), ", killedRuns, isolation, killed)
		for what, n := range map[string]int{"lost": killedRuns - len(now) + len(lost), "twice": twice} {
			r.report(measure.Row{What: name + what, Value: measure.Of("", float64(n)), Target: measure.AtMost(0)})
		}
		r.report(measure.Row{What: name + "all of it", Value: measure.Of("s", time.Since(start).Seconds())})
	}
	return ctx.Err()
}

// killUntilEnd kills processes of a campaign at random moments, so many at most, until it has ended or was killed
// itself.
func killUntilEnd(ctx context.Context, cmd *exec.Cmd, most int) (killed int, ended bool, err error) {
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	for {
		wait := minLife + rand.N(maxLife-minLife)
		if killed >= most {
			wait = time.Hour
		}
		select {
		case err := <-gone:
			return killed, true, err
		case <-ctx.Done():
			return killed, true, errors.Join(<-gone, ctx.Err())
		case <-time.After(wait):
		}
		if killed >= most {
			continue
		}
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
