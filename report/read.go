package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// Run is what a report needs to know of a run.
type Run struct {
	record.Run
	File  string
	Model string // that the agent used, if any
	Task  problem.Task
	Class session.Class
	Why   string
	// Unfinished says that the record has no verdict: the run is still under way, or its process was
	// killed. What the record has of it says nothing about the agent yet.
	Unfinished bool

	Seconds             float64
	Steps               int
	InTokens, OutTokens int
	Cost                *float64                  // nil if it is not known
	Top1, Top3          bool                      // of localization
	Level, Type         bool                      // of analysis
	Faulty              bool                      // there was a fault to find
	Stages              map[problem.Task]RunStage // of an incident
	Actions             []string                  // one for each step
	Writes              int                       // of the agent
	Repeated            int                       // steps that did what one before had done, see [Conduct]
	App                 string
	Faults              []string      // kind and target
	SystemLevel         string        // of the cause, if the record tells
	Load                string        // in a few words
	Commands            []string      // the programs that the agent ran in a shell
	Safety              *grade.Safety // nil if the verdict does not tell
	Group               *RunGroup     // of an agent that is several, or nil
	Aim                 Aim           // of an operation
	Shift               *grade.ShiftScore
}

// RunStage is how a question of an incident was answered.
type RunStage struct {
	Class   session.Class
	Seconds *float64 // to the answer; nil if there was none
}

func (s RunStage) counts() bool { return s.Class == session.Solved || s.Class == session.AgentFailed }

// Counts reports whether the run says something about the agent.
func (r *Run) Counts() bool { return r.Class == session.Solved || r.Class == session.AgentFailed }

func (r *Run) solved() bool { return r.Class == session.Solved }

// Contestant is who ran: the agent, with its model if it has one. React with another model is another
// contestant.
func (r *Run) Contestant() string {
	if r.Model == "" {
		return r.Agent
	}
	return fmt.Sprintf("%s (%s)", r.Agent, r.Model)
}

var errNoProblem = errors.New("the record has no problem in it")

// Unfinished is the class of a run without a verdict.
const Unfinished session.Class = "unfinished"

// Files returns the records among paths. Files are taken as they are; in directories, and the directories below,
// it takes all files that are named like a record.
func Files(paths ...string) ([]string, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		err = fs.WalkDir(os.DirFS(p), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(name, ".jsonl") {
				files = append(files, filepath.Join(p, filepath.FromSlash(name)))
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	return files, nil
}

// Read reads runs from their records, one at a time. A record that cannot be read is an error that
// names the file; the next one is read all the same.
func Read(files []string) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for _, f := range files {
			r, err := readRun(f)
			if !yield(r, err) {
				return
			}
		}
	}
}

func readRun(file string) (*Run, error) {
	rec, err := record.Read(file)
	if err != nil {
		return nil, err
	}
	r := &Run{Run: rec.Run, File: file}
	r.Agent = cmp.Or(r.Agent, "(unnamed)")
	v, err := r.scan(rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if v == nil {
		r.Unfinished, r.Class, r.Why = true, Unfinished, unfinished(rec)
		return r, nil
	}
	if r.Task == "" {
		return nil, fmt.Errorf("%s: %w", file, errNoProblem)
	}
	r.take(v)
	return r, nil
}

// unfinished says how far a run without a verdict came.
func unfinished(rec *record.Record) string {
	var p record.Phase
	for _, e := range rec.Events {
		if e.Kind == record.PhaseEvent {
			_ = e.Decode(&p) // A phase that cannot be read is not told.
		}
	}
	why := "not finished, or cut off"
	if rec.Torn {
		why = "cut off: its writer was killed"
	}
	if p.Name != "" {
		why += "; last it was at: " + p.Name
	}
	return why
}

// scan takes what the events tell, and returns the verdict if there is one.
func (r *Run) scan(rec *record.Record) (v *session.Verdict, err error) {
	var done repeats
	for _, e := range rec.Events {
		switch e.Kind {
		case record.ProblemEvent:
			var p recordedProblem
			if err := e.Decode(&p); err != nil {
				return nil, err
			}
			r.takeProblem(p)
		case record.StepEvent:
			var s record.Step
			if err := e.Decode(&s); err != nil {
				return nil, err
			}
			r.step(s)
			r.Repeated += bit(done.step(s))
		case record.WriteEvent:
			done.write()
		case record.VerdictEvent:
			v = new(session.Verdict)
			if err := e.Decode(v); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// take takes the results of a verdict.
func (r *Run) take(v *session.Verdict) {
	r.Class, r.Why = v.Class, v.Why
	number := func(key string) (n float64) {
		n, _ = v.Results[key].(float64)
		return n
	}
	if took := v.Results.Took(); took != nil {
		r.Seconds = *took
	}
	r.takeStages(v.Results["stages"])
	r.Steps, r.Writes = len(r.Actions), int(number("writes"))
	r.InTokens, r.OutTokens = int(number("in_tokens")), int(number("out_tokens"))
	r.Model, _ = v.Results["model"].(string)
	r.Group, r.Shift = takeGroup(v.Results), grade.ReadShift(v.Results)
	if cost, ok := v.Results["cost_usd"].(float64); ok {
		r.Cost = &cost
	}
	if level, ok := v.Results["level"].(string); ok && r.Aim.Level == "" { // Records did not always have the goal.
		r.Aim.Level = level
	}
	r.Safety = grade.ReadSafety(v.Results)
	yes := func(key string) bool { return v.Results[key] == true }
	r.Top1, r.Top3 = yes("top_1"), yes("top_3")
	r.Level, r.Type = yes("system_level_correct"), yes("fault_type_correct")
}

// takeStages takes what a verdict says of the questions of an incident.
func (r *Run) takeStages(results any) {
	stages, _ := results.(map[string]any)
	for q, result := range stages {
		fields, _ := result.(map[string]any)
		class, _ := fields["class"].(string)
		s := RunStage{Class: session.Class(class)}
		if n, ok := fields[grade.TimeKeys[problem.Task(q)]].(float64); ok {
			s.Seconds = &n
		}
		if r.Stages == nil {
			r.Stages = map[problem.Task]RunStage{}
		}
		r.Stages[problem.Task(q)] = s
	}
}
