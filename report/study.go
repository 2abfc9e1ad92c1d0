package report

import (
	_ "embed" // for the numbers of the study
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// studyNumbers are the results of the study of self-managing services (ACV), a line for each operation.
//
//go:embed study.tsv
var studyNumbers string

// Study is how the agents of the study did at an operation, or at all of a scope and level.
type Study struct {
	Tables string `json:"tables"` // of the study, by their numbers
	// Trials are as the study writes them: 1 for one that was passed and 0 for another, or of how many chances how many
	// were taken. Means have none.
	Trials []string `json:"trials,omitempty"`
	Solved Part     `json:"solved"` // all trials together
	// Rounds and Assignment are of a manager and its maintainers, and nil for a maintainer alone.
	Rounds     *float64 `json:"rounds"`
	Steps      float64  `json:"steps"` // calls of the model: decisions of members
	Assignment *float64 `json:"assignment_accuracy"`
}

// studyLine is a line of the study's results. A dash stands for what it does not have.
type studyLine struct {
	tables, operation                 string
	aim                               Aim
	trials, rounds, steps, assignment []string
}

// studyLines are all lines, as they stand.
func studyLines() (lines []studyLine) {
	for line := range strings.Lines(studyNumbers) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(f) != 8 || f[0] == "tables" {
			continue
		}
		lines = append(lines, studyLine{
			tables: f[0], aim: Aim{Level: f[2], Scope: f[1]}, operation: f[3], trials: strings.Fields(f[4]),
			rounds: strings.Fields(f[5]), steps: strings.Fields(f[6]), assignment: strings.Fields(f[7]),
		})
	}
	return lines
}

// studyOf is what the study has of an operation; nil if it has nothing.
func studyOf(operation string) *Study {
	for _, l := range studyLines() {
		if l.operation == operation {
			s := studyMean([]studyLine{l})
			s.Trials = l.trials
			return s
		}
	}
	return nil
}

// studyFor is the study's mean of all operations with an aim, where an agent has tried at least one of them.
func (b *Builder) studyFor(k groupKey) *Study {
	lines := slices.DeleteFunc(studyLines(), func(l studyLine) bool { return l.aim != k.aim })
	if !slices.ContainsFunc(lines, func(l studyLine) bool { return b.operations[opKey{l.operation, k.agent}] != nil }) {
		return nil
	}
	return studyMean(lines)
}

// studyMean is that of lines of the same tables. Shares are of all trials, chances and rounds together, as the study's.
func studyMean(lines []studyLine) *Study {
	s := &Study{Tables: lines[0].tables}
	var solved, assigned Part
	var rounds, steps mean
	for _, l := range lines {
		for _, t := range l.trials {
			solved.add(t)
		}
		for _, a := range l.assignment {
			assigned.add(a)
		}
		rounds.addAll(l.rounds)
		steps.addAll(l.steps)
	}
	s.Solved, s.Rounds, s.Steps = solved, rounds.value(), *steps.value()
	if assigned.Of > 0 {
		s.Assignment = &assigned.Value
	}
	return s
}

// add takes what the study writes of a trial: 1 or 0, so many of so many, or a dash.
func (p *Part) add(text string) {
	n, of, fraction := strings.Cut(text, "/")
	if !fraction {
		of = "1"
	}
	a, err := strconv.Atoi(n)
	b, err2 := strconv.Atoi(of)
	if err != nil || err2 != nil || p.Of+b == 0 {
		return
	}
	p.N, p.Of = p.N+a, p.Of+b
	p.Value = float64(p.N) / float64(p.Of)
}

// addAll takes the numbers among some words.
func (m *mean) addAll(words []string) {
	for _, w := range words {
		if n, err := strconv.ParseFloat(w, 64); err == nil {
			m.add(&n)
		}
	}
}

// trials are the tries: a mark for each, or of how many chances how many were taken.
func (s *Study) trials() string {
	marks := map[string]string{"1": "✓", "0": "✗", "0/0": "-"}
	list := slices.Clone(s.Trials)
	for i, t := range list {
		if m, ok := marks[t]; ok {
			list[i] = m
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// percent is how many of all were solved.
func (s *Study) percent() string { return fmt.Sprintf("%.1f", 100*s.Solved.Value) }

// besideStudy adds the study's columns to a table of ours, the first row of which is its head: for each of the other
// rows what the study has there, the first column as it is shown. A table of which the study has nothing stays as
// it is.
func besideStudy(rows [][]string, first string, studies []*Study, show func(*Study) string) [][]string {
	if !slices.ContainsFunc(studies, func(s *Study) bool { return s != nil }) {
		return rows
	}
	for _, column := range []string{first, "ROUNDS", "STEPS", "ASSIGNMENT (%)"} {
		rows[0] = append(rows[0], "STUDY: "+column)
	}
	for i, s := range studies {
		cells := []string{"-", "-", "-", "-"}
		if s != nil {
			cells = []string{show(s), orNone(s.Rounds, 1), fmt.Sprintf("%.1f", s.Steps), orNone(s.Assignment, 100)}
		}
		rows[i+1] = append(rows[i+1], cells...)
	}
	return rows
}

// csvStudy are the cells of the study, which are the last of a line.
func csvStudy(s *Study) []string {
	if s == nil {
		return nil
	}
	return []string{
		strings.Join(s.Trials, " "), csvNumber(&s.Solved.Value), csvNumber(s.Rounds), csvNumber(&s.Steps),
		csvNumber(s.Assignment),
	}
}
