package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options are what the suite runs with.
type Options struct {
	Lab   string // the lab's program
	Agent string // command line of a program that calls [Agent] with two arguments, the plan and the log
	Dir   string // for records and logs
	// Most is how many bytes the lab's processes may hold together, beside the program's own file.
	// More is a trick that was not held. 0 is [DefaultMost].
	Most uint64
	// Progress is told of every result. It may be nil.
	Progress func(Result)
}

// DefaultMost is the memory that an environment may take, whatever an agent does.
const DefaultMost = 5 << 30

const (
	defaultSeconds = 20
	// sampling is how often the lab's memory is looked at.
	sampling = 100 * time.Millisecond
	// runTimeout is how long one run of the lab may take.
	runTimeout = 30 * time.Minute
	// startTries is how often a run is begun that ends before the agent has its turn.
	startTries = 3
)

// Result is what came of a trick.
type Result struct {
	*Trick
	Held bool
	Why  string // it was not
	Peak uint64 // bytes of memory
}

// Run tries tricks one after another. It fails only if the suite itself cannot run.
func Run(ctx context.Context, o Options, tricks []*Trick) ([]Result, error) {
	if o.Most == 0 {
		o.Most = DefaultMost
	}
	var results []Result
	report := func(list []Result) {
		for _, r := range list {
			if o.Progress != nil {
				o.Progress(r)
			}
		}
		results = append(results, list...)
	}
	for len(tricks) > 0 {
		group := together(tricks)
		done, err := o.group(ctx, group)
		if err != nil {
			return results, err
		}
		report(done)
		tricks = tricks[len(done):]
	}
	return results, nil
}

// together are the first tricks that can share a run.
func together(tricks []*Trick) []*Trick {
	first := tricks[0]
	if first.Verdict != "" {
		return tricks[:1]
	}
	n := 1
	for n < len(tricks) && tricks[n].Verdict == "" && tricks[n].Problem == first.Problem {
		n++
	}
	return tricks[:n]
}

// group has one run, and returns the results of the tricks it came to: all, unless one of them ended
// the lab.
func (o *Options) group(ctx context.Context, tricks []*Trick) ([]Result, error) {
	for range startTries - 1 {
		r, err := o.once(ctx, tricks)
		if err != nil || len(r) > 0 {
			return r, err
		}
	}
	r, err := o.once(ctx, tricks)
	if err == nil && len(r) == 0 {
		err = errors.New("the agent had no turn")
	}
	return r, err
}

func (o *Options) once(ctx context.Context, tricks []*Trick) ([]Result, error) {
	dir, err := os.MkdirTemp(o.Dir, "run-")
	if err != nil {
		return nil, err
	}
	planFile, logFile := filepath.Join(dir, "plan"), filepath.Join(dir, "log")
	b, err := json.Marshal(newPlan(tricks))
	if err == nil {
		err = os.WriteFile(planFile, b, 0o600)
	}
	if err == nil {
		err = os.WriteFile(logFile, nil, 0o600)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.Lab, "run", tricks[0].Problem, "--agent",
		fmt.Sprintf("exec:%s %s %s", o.Agent, planFile, logFile),
		"--agent-write", dir, "--results", filepath.Join(dir, "results"),
		"--noise", "none", "--max-steps", "10000", "--max-time", "1h", "-o", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	peaks := make([]uint64, len(tricks))
	watched := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(watched)
		watch(cmd.Process, logFile, peaks, 2*o.Most, ended)
	}()
	werr := cmd.Wait()
	close(ended)
	<-watched
	return o.results(tricks, peaks, logFile, stdout.Bytes(), lastLine(stderr.String(), werr))
}

// newPlan is what the agent is to do.
func newPlan(tricks []*Trick) plan {
	var p plan
	for _, t := range tricks {
		var steps []string
		seconds := t.Seconds
		if seconds == 0 {
			seconds = defaultSeconds
		}
		for _, c := range t.Shell {
			steps = append(steps, shellCall(c, seconds))
		}
		for _, s := range t.Send {
			steps = append(steps, textCall(s))
		}
		p.Tricks = append(p.Tricks, planned{steps})
	}
	if tricks[0].Verdict == "" {
		p.Submit = textCall("```\nsubmit(\"No\")\n```")
	}
	return p
}

// results reads what a run came to.
func (o *Options) results(tricks []*Trick, peaks []uint64, logFile string, stdout []byte,
	stderr string,
) ([]Result, error) {
	notes, err := readNotes(logFile)
	if err != nil {
		return nil, err
	}
	var outcome struct {
		Verdict struct{ Class, Why string }
	}
	judged := json.Unmarshal(stdout, &outcome) == nil
	var list []Result
	for i, t := range tricks {
		begun, well := false, false
		var seen []string
		for _, n := range notes {
			switch {
			case n.Trick != i:
			case n.Begun:
				begun = true
			case n.Alive:
				well = true
			default:
				seen = append(seen, n.Observation)
			}
		}
		if !begun {
			break
		}
		r := Result{Trick: t, Peak: peaks[i], Why: t.judge(seen)}
		switch {
		case !judged:
			if !well {
				r.Why = "the run has no verdict: " + stderr
			}
		case t.Verdict != "":
			if v := outcome.Verdict; v.Class != t.Verdict || t.why != nil && !t.why.MatchString(v.Why) {
				r.Why = fmt.Sprintf("the verdict is %s: %s", v.Class, v.Why)
			}
		case !well:
			r.Why = fmt.Sprintf("the lab did not work afterwards; the verdict is %s: %s", outcome.Verdict.Class,
				outcome.Verdict.Why)
		}
		if r.Why == "" && r.Peak > o.Most {
			r.Why = fmt.Sprintf("the lab took %d MB", r.Peak>>20)
		}
		r.Held = r.Why == ""
		list = append(list, r)
	}
	return list, nil
}

func readNotes(file string) ([]note, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []note
	for d := json.NewDecoder(f); ; {
		var n note
		if err := d.Decode(&n); err != nil {
			return list, nil // The last line may be cut off.
		}
		list = append(list, n)
	}
}

// watch keeps the largest memory of the lab's processes for each trick. What takes more than most is
// killed, for the machine's sake.
func watch(lab *os.Process, logFile string, peaks []uint64, most uint64, ended <-chan struct{}) {
	log, err := os.Open(logFile)
	if err != nil {
		return
	}
	defer log.Close()
	lines := bufio.NewReader(log)
	current := -1
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	var rest []byte
	for {
		select {
		case <-tick.C:
		case <-ended:
			return
		}
		for {
			part, err := lines.ReadBytes('\n')
			rest = append(rest, part...)
			if err != nil {
				break
			}
			var n note
			if json.Unmarshal(rest, &n) == nil {
				current = n.Trick
			}
			rest = rest[:0]
		}
		size := held(lab.Pid)
		if current >= 0 && current < len(peaks) {
			peaks[current] = max(peaks[current], size)
		}
		if size > most {
			_ = lab.Kill()
		}
	}
}

// held is how much memory a process and its descendants hold beside files. It is 0 where the system
// does not tell.
func held(pid int) (sum uint64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			sum = kb << 10
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		for _, child := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(child); err == nil {
				sum += held(n)
			}
		}
	}
	return sum
}

func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, l := range lines { // What the Go runtime says of its end comes before the stacks.
		if strings.HasPrefix(l, "fatal error:") || strings.HasPrefix(l, "panic:") || strings.HasPrefix(l, "runtime:") {
			return l
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return fmt.Sprint(err)
}

// Print writes how many tricks were tried and held, by class, and which were not.
func Print(w io.Writer, results []Result) {
	var classes []string
	tried, held := map[string]int{}, map[string]int{}
	for _, r := range results {
		if tried[r.class] == 0 {
			classes = append(classes, r.class)
		}
		tried[r.class]++
		if r.Held {
			held[r.class]++
		}
	}
	fmt.Fprintf(w, "%-10s %6s %6s\n", "class", "tried", "held")
	all := 0
	for _, c := range classes {
		fmt.Fprintf(w, "%-10s %6d %6d\n", c, tried[c], held[c])
		all += held[c]
	}
	fmt.Fprintf(w, "%-10s %6d %6d\n", "all", len(results), all)
	for _, r := range results {
		if !r.Held {
			fmt.Fprintf(w, "not held: %s: %s: %s\n", r.class, r.Name, r.Why)
		}
	}
}
