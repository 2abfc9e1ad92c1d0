package report

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/problem"
)

// Each operation of the study is one of ours, of the same level and about as many services, and none is left out.
func TestStudyIsInCatalog(t *testing.T) {
	lines := studyLines()
	if want := strings.Count(studyNumbers, "\tautonomic-"); len(lines) != want {
		t.Errorf("%d lines of %d are read", len(lines), want)
	}
	known := map[string]bool{}
	for _, l := range lines {
		if known[l.operation] {
			t.Errorf("%s is there twice", l.operation)
		}
		known[l.operation] = true
		source, err := fs.ReadFile(problem.Catalog(), l.operation+".yaml")
		if err != nil {
			t.Error(err)
			continue
		}
		var d problem.Document
		if err := yaml.Unmarshal(source, &d); err != nil {
			t.Fatal(err)
		}
		if aim := aimOf(d.Goal.Level, d.Goal.Services); d.ID != l.operation || aim != l.aim {
			t.Errorf("%s of the study is %v, and %s is %v", l.operation, l.aim, d.ID, aim)
		}
	}
	ours, err := fs.Glob(problem.Catalog(), "autonomic-L*.yaml")
	if err != nil || len(ours) == 0 {
		t.Fatal(ours, err)
	}
	for _, file := range ours {
		if id := strings.TrimSuffix(path.Base(file), ".yaml"); !known[id] {
			t.Errorf("%s is not in study.tsv", id)
		}
	}
}

// The means of the lines are those that the study prints below its tables.
func TestStudyMeans(t *testing.T) {
	for aim, want := range map[Aim]string{
		{"L1", low}:  "1.00 - 4.9 -",
		{"L2", low}:  "0.87 - 7.9 -",
		{"L3", low}:  "0.74 - 8.8 -",
		{"L4", low}:  "0.50 - 8.8 -",
		{"L5", low}:  "0.25 - 8.8 -",
		{"L2", high}: "0.58 3.2 31.0 86.8", // The study has 34/39, of which its rows have 33/38.
		{"L3", high}: "0.90 3.3 45.0 70.0",
		{"L4", high}: "0.50 3.3 45.0 70.0",
		{"L5", high}: "0.42 3.3 45.0 70.0",
	} {
		var lines []studyLine
		for _, l := range studyLines() {
			if l.aim == aim {
				lines = append(lines, l)
			}
		}
		s := studyMean(lines)
		got := fmt.Sprintf("%.2f %s %.1f %s", s.Solved.Value, orNone(s.Rounds, 1), s.Steps, orNone(s.Assignment, 100))
		if got != want {
			t.Errorf("%s: %s, want %s", aim.name(), got, want)
		}
	}
}

// Each trial has its number of rounds, its steps or those of its evaluations, and as many assignments as rounds.
func TestStudyTrials(t *testing.T) {
	const trials = 3
	for _, l := range studyLines() {
		steps := trials
		if l.aim.Scope == low && l.aim.Level > "L2" {
			steps *= trials
		}
		if len(l.trials) != trials || len(l.steps) != steps {
			t.Errorf("%s: %v in %v steps", l.operation, l.trials, l.steps)
		}
		if l.aim.Scope == low {
			continue
		}
		for i, a := range l.assignment {
			if _, of, _ := strings.Cut(a, "/"); of != l.rounds[i] {
				t.Errorf("%s: %s assignments in %s rounds", l.operation, a, l.rounds[i])
			}
		}
	}
}

// A report has the study beside ours, and where it has none of the operations its columns are missing.
func TestBesideStudy(t *testing.T) {
	var b Builder
	for i, p := range []string{"autonomic-L5-cpu-stress-high-1", "autonomic-L3-x-high-1", "autonomic-L5-cpu-stress-high-1"} {
		r := &Run{File: fmt.Sprint(i), Class: "solved", Task: problem.Operation, Group: &RunGroup{}, Aim: Aim{"L5", high}}
		if i == 1 {
			r.Aim.Level = "L3"
		}
		r.ID, r.Agent, r.Problem = r.File, "hierarchy", p
		b.Add(r)
	}
	r := b.Report()
	if s := r.Operations[1].Study; s == nil || s.trials() != "[1/3, 2/4, 2/3]" || s.Tables != "6, 12" {
		t.Errorf("%+v", s)
	}
	if s := r.Groups[1].Study; s == nil || s.percent() != "42.1" || s.Trials != nil {
		t.Errorf("%+v", s)
	}
	if r.Operations[0].Study != nil || r.Groups[0].Study != nil {
		t.Error("the study has what it does not have")
	}
	if s := studyOf("autonomic-L4-rising-traffic-low-1"); s.trials() != "[-, -, 1/1]" {
		t.Error(s.trials())
	}
	if s := studyOf("autonomic-L2-cpu-low-1"); s.trials() != "[✓, ✗, ✓]" {
		t.Error(s.trials())
	}
	head := besideStudy([][]string{{"A"}, {"a"}}, "TRIALS", []*Study{nil}, (*Study).trials)[0]
	if len(head) != 1 {
		t.Error(head)
	}
}
