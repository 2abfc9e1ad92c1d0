package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// Incident is how an agent did in incidents with a fault, question by question. A question counts if it could be
// judged, even in a run that says nothing as a whole; a share of two questions counts runs in which both could be.
type Incident struct {
	Agent string `json:"agent"`
	// Solved is of the runs with a fault in which every question was answered right, and Healthy the same of the
	// healthy twins.
	Solved  Share `json:"solved"`
	Healthy Share `json:"healthy"`
	// Stages are the questions, each with how often it was answered right and how long that took.
	Stages []Stage `json:"stages"`
	// Mended tells how often the system was mended by agents that had found the fault, and by those that had not.
	Mended Conditional `json:"mitigated"`
	// Lucky is the share of the mended systems whose fault the agent had not found.
	Lucky Share `json:"lucky_fixes"`
}

// Stage is one question of incidents.
type Stage struct {
	Question problem.Task `json:"question"`
	Right    Share        `json:"right"`
	Seconds  float64      `json:"seconds"` // to the answer, in the mean
}

// Conditional is how often something was so, given whether the fault had been found.
type Conditional struct {
	Localized    Share `json:"given_localized"`
	NotLocalized Share `json:"given_not_localized"`
}

// incidentTally is what an Incident is made of.
type incidentTally struct {
	solved, healthy Problems
	right           map[problem.Task]*Problems // of the questions that could be judged
	seconds         map[problem.Task]float64
	timed           map[problem.Task]int
	mended          [2]Problems // by whether the fault was localized: 1 if it was
	lucky           Problems    // of the mended systems, those whose fault was not found
}

func newIncidentTally() *incidentTally {
	return &incidentTally{
		right: map[problem.Task]*Problems{}, seconds: map[problem.Task]float64{}, timed: map[problem.Task]int{},
	}
}

func (t *incidentTally) add(r *Run) {
	if r.Counts() {
		solved := &t.solved
		if !r.Faulty {
			solved = &t.healthy
		}
		solved.Add(r.Problem, r.solved())
	}
	if !r.Faulty {
		return
	}
	for q, s := range r.Stages {
		if !s.counts() {
			continue
		}
		if t.right[q] == nil {
			t.right[q] = &Problems{}
		}
		t.right[q].Add(r.Problem, s.Class == session.Solved)
		if s.Seconds != nil {
			t.seconds[q] += *s.Seconds
			t.timed[q]++
		}
	}
	where, mend := r.Stages[problem.Localization], r.Stages[problem.Mitigation]
	if !where.counts() || !mend.counts() {
		return
	}
	found, mended := where.Class == session.Solved, mend.Class == session.Solved
	t.mended[bit(found)].Add(r.Problem, mended)
	if mended {
		t.lucky.Add(r.Problem, !found)
	}
}

func (t *incidentTally) incident(agent string) Incident {
	i := Incident{
		Agent: agent, Stages: []Stage{},
		Solved: t.solved.Share(), Healthy: t.healthy.Share(),
		Mended: Conditional{t.mended[1].Share(), t.mended[0].Share()},
		Lucky:  t.lucky.Share(),
	}
	for _, q := range problem.Tasks {
		if right := t.right[q]; right != nil {
			i.Stages = append(i.Stages, Stage{q, right.Share(), t.seconds[q] / float64(max(t.timed[q], 1))})
		}
	}
	return i
}

// incidents are those of the agents, by name.
func (b *Builder) incidentRows() []Incident {
	rows := []Incident{}
	for _, agent := range slices.Sorted(maps.Keys(b.incidents)) {
		rows = append(rows, b.incidents[agent].incident(agent))
	}
	return rows
}

// stageNames are what it is to answer a question right, for the head of a table.
var stageNames = map[problem.Task]string{
	problem.Detection: "DETECTED", problem.Localization: "LOCALIZED", problem.Analysis: "ANALYSED",
	problem.Mitigation: "MITIGATED",
}

func (p *printer) incidents(r *Report) {
	if len(r.Incidents) == 0 {
		return
	}
	head := []string{"AGENT", "ALL RIGHT"}
	for _, q := range problem.Tasks {
		if name := stageNames[q]; name != "" {
			head = append(head, name)
		}
	}
	rows := [][]string{append(head, "P(MITIGATED | LOCALIZED)", "P(MITIGATED | NOT LOCALIZED)", "LUCKY FIXES",
		"HEALTHY TWINS")}
	times := [][]string{{"AGENT", "TTD (s)", "TTL (s)", "TTA (s)", "TTM (s)"}}
	for _, i := range r.Incidents {
		line, took := []string{cell(i.Agent), i.Solved.counted()}, []string{cell(i.Agent)}
		for _, q := range problem.Tasks {
			if stageNames[q] == "" {
				continue
			}
			share, seconds := NewShare(0, 0).counted(), "-"
			if n := slices.IndexFunc(i.Stages, func(s Stage) bool { return s.Question == q }); n >= 0 {
				share, seconds = i.Stages[n].Right.counted(), fmt.Sprintf("%.2f", i.Stages[n].Seconds)
			}
			line, took = append(line, share), append(took, seconds)
		}
		rows = append(rows, append(line, i.Mended.Localized.counted(), i.Mended.NotLocalized.counted(),
			i.Lucky.counted(), i.Healthy.counted()))
		times = append(times, took)
	}
	p.table("Incidents with a fault, question by question, %, with counts and 95 % intervals", rows)
	p.table("Time to each answer of an incident", times)
}

// counted is a share with its count and its interval.
func (s Share) counted() string {
	if s.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f (%d/%d; %.1f - %.1f)", 100*s.Value, s.N, s.Of, 100*s.Low, 100*s.High)
}
