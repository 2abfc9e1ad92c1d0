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
	solved, runs, healthySolved, healthy int
	right, judged                        map[problem.Task]int
	seconds                              map[problem.Task]float64
	timed                                map[problem.Task]int
	mended, found                        [2]int // by whether the fault was localized: 1 if it was
}

func newIncidentTally() *incidentTally {
	return &incidentTally{
		right: map[problem.Task]int{}, judged: map[problem.Task]int{},
		seconds: map[problem.Task]float64{}, timed: map[problem.Task]int{},
	}
}

func (t *incidentTally) add(r *Run) {
	if r.Counts() {
		solved, runs := &t.solved, &t.runs
		if !r.Faulty {
			solved, runs = &t.healthySolved, &t.healthy
		}
		*runs++
		if r.Class == session.Solved {
			*solved++
		}
	}
	if !r.Faulty {
		return
	}
	for q, s := range r.Stages {
		if !s.counts() {
			continue
		}
		t.judged[q]++
		if s.Class == session.Solved {
			t.right[q]++
		}
		if s.Seconds != nil {
			t.seconds[q] += *s.Seconds
			t.timed[q]++
		}
	}
	where, mend := r.Stages[problem.Localization], r.Stages[problem.Mitigation]
	if !where.counts() || !mend.counts() {
		return
	}
	found := 0
	if where.Class == session.Solved {
		found = 1
	}
	t.found[found]++
	if mend.Class == session.Solved {
		t.mended[found]++
	}
}

func (t *incidentTally) incident(agent string) Incident {
	i := Incident{
		Agent: agent, Stages: []Stage{},
		Solved: NewShare(t.solved, t.runs), Healthy: NewShare(t.healthySolved, t.healthy),
		Mended: Conditional{NewShare(t.mended[1], t.found[1]), NewShare(t.mended[0], t.found[0])},
		Lucky:  t.lucky(),
	}
	for _, q := range problem.Tasks {
		if n := t.judged[q]; n > 0 {
			i.Stages = append(i.Stages, Stage{q, NewShare(t.right[q], n), t.seconds[q] / float64(max(t.timed[q], 1))})
		}
	}
	return i
}

// lucky is the share of the mended systems whose fault was not found.
func (t *incidentTally) lucky() Share { return NewShare(t.mended[0], t.mended[0]+t.mended[1]) }

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
