package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/token"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// Class says how a run ended, and whose fault a failure is.
type Class string

const (
	Solved      Class = "solved"
	AgentFailed Class = "agent" // the only failure that counts against an agent
	Infra       Class = "infra" // the environment or a model failed; run it again
	// GraderFailed means that the lab failed to judge.
	GraderFailed Class = "grader"
	// Inconclusive is a run that tells nothing about the agent: it was interrupted, or what the agent was to find
	// was not there.
	Inconclusive Class = "inconclusive"
	// ShadowRun is a run on a live system, on which there is no verdict.
	ShadowRun Class = "shadow"
	// Searched is an episode in training that began where another one had been, or to which others may go back: who
	// ran it may have tried more than once. Its results have the class that it would have otherwise, as "search".
	Searched Class = "search"
)

// Verdict is how an agent did.
type Verdict struct {
	Class Class  `json:"class"`
	Why   string `json:"why"` // one line
	// Results have AIOpsLab's keys, and more.
	Results grade.Result `json:"results"`
}

// truth is the problem as it is recorded.
type truth struct {
	ID     string         `json:"id"`
	Task   problem.Task   `json:"task"`
	App    string         `json:"app"`
	Faults []string       `json:"faults,omitempty"` // kind and target
	Answer problem.Answer `json:"answer"`
	// Namespace is the application's.
	Namespace string `json:"namespace,omitempty"`
	// Goal is what an operation asks for.
	Goal *problem.Goal `json:"goal,omitempty"`
	// Questions are those of an incident.
	Questions []problem.Task `json:"questions,omitempty"`
	Load      string         `json:"load,omitempty"` // as in a document
	Seed      uint64         `json:"seed"`
	// Topology is the application's. Records did not always have it.
	Topology *topology `json:"topology,omitempty"`
	// Shadow says that the system is live: nothing was wrong with it that the lab knows of.
	Shadow bool `json:"shadow,omitempty"`
	// Offline says that the incident was over, and the agent had what was recorded of it.
	Offline bool `json:"offline,omitempty"`
}

func describe(p *problem.Problem, seed uint64) truth {
	t := truth{
		ID: p.ID, Task: p.Task, App: p.App.Name, Namespace: p.App.Namespace, Load: p.Load().Key(), Seed: seed,
		Answer: p.Answer(), Goal: p.Goal(), Topology: topologyOf(p.App),
	}
	for _, f := range p.Faults() {
		t.Faults = append(t.Faults, strings.TrimSpace(f.Kind+" "+f.Target))
	}
	if p.Task == problem.Incident {
		t.Questions = p.Questions()
	}
	return t
}

// byState reports whether the system that an agent leaves is judged, not an answer alone.
func (t truth) byState() bool { return t.Task == problem.Mitigation || t.Task == problem.Operation }

// correct is the right answer, as an agent would submit it; of an incident, those to its questions.
func (t truth) correct() any {
	if t.Task == problem.Incident {
		all := map[problem.Task]any{}
		for _, q := range t.Questions {
			if q != problem.Mitigation {
				all[q] = t.asking(q).correct()
			}
		}
		return all
	}
	switch t.Task {
	case problem.Detection:
		if len(t.Faults) > 0 {
			return "Yes"
		}
		return "No"
	case problem.Localization:
		names := []string{}
		for _, c := range t.Answer.Components {
			names = append(names, c.Name)
		}
		return names
	case problem.Analysis:
		if t.Answer.Cause != nil { // The interface would not be nil.
			return t.Answer.Cause
		}
	}
	return nil
}

// history is what a record tells.
type history struct {
	truth     truth
	baseline  grade.Look
	briefing  record.Briefing
	began     time.Time // the faults showed, or the agent's turn came
	shown     time.Time // the last fault showed
	briefed   time.Time // the agent's turn came
	ended     time.Time // the submission
	steps     []record.Step
	writes    int
	journal   []guard.Entry
	proposals []guard.Entry // of a shadow run
	// transactions are what came of the actions of transactions.
	transactions []guard.Transaction
	submission   *record.Submission
	answers      []answer // to the questions of an incident
	mends        bool     // an incident asks to mend the system, so what is gone may be the agent's work
	death        *record.Death
	search       bool // a snapshot was taken of it, or it was restored from one
	interrupt    bool // the system was not watched for as long as it takes
	changes      changes
	doing        Doing
	found        []grade.Operated // services with objectives, at the beginning of the turn
	hold         grade.Holding
	looks        []grade.Look
	blind        string // why the system could not be looked at any more
	judgement    *grade.Judgement
	models       modelUse
	decoys       []record.Decoy
	faults       []record.Fault // those that showed
	severity     []grade.Point  // how bad the system was
	group        groupUse
	tale         shiftTale // of a shift
}

func decode(rec *record.Record) (*history, error) {
	h := &history{ended: rec.Time}
	for _, e := range rec.Events {
		var err error
		switch e.Kind {
		case record.ProblemEvent:
			err = e.Decode(&h.truth)
		case record.BaselineEvent:
			err = e.Decode(&h.baseline)
		case record.FaultEvent:
			var f record.Fault
			err = e.Decode(&f)
			h.began, h.shown = f.Time, f.Time
			h.faults = append(h.faults, f)
		case record.DecoyEvent:
			var d record.Decoy
			err = e.Decode(&d)
			h.decoys = append(h.decoys, d)
		case record.BriefingEvent:
			err = e.Decode(&h.briefing)
			h.briefed = e.Time
			if h.began.IsZero() {
				h.began = e.Time
			}
		case record.StepEvent:
			var s record.Step
			err = e.Decode(&s)
			h.steps = append(h.steps, s)
		case record.AnswerEvent:
			a := answer{time: e.Time, writes: h.writes}
			err = e.Decode(&a.Answer)
			h.answers = append(h.answers, a)
		case record.WriteEvent:
			var w guard.Entry
			err = e.Decode(&w)
			// What takes a write back is the agent's doing, and none that it has made.
			if h.journal = append(h.journal, w); len(doings(h.journal)) > 0 && w.Undoes == 0 {
				h.writes++
			}
		case record.ProposalEvent:
			var p guard.Entry
			err = e.Decode(&p)
			h.proposals = append(h.proposals, p)
		case record.TransactionEvent:
			var t guard.Transaction
			err = e.Decode(&t)
			h.transactions = append(h.transactions, t)
		case record.ShiftEvent, record.IncidentEvent, record.PageEvent, record.ShiftEndEvent:
			err = h.tale.add(e)
		case record.SeverityEvent:
			err = h.addSeverity(e)
		case record.DoingEvent:
			err = e.Decode(&h.doing)
		case record.FoundEvent:
			err = e.Decode(&h.found)
		case record.HoldEvent:
			err = e.Decode(&h.hold)
		case record.BlindEvent:
			var b record.Blind
			err = e.Decode(&b)
			h.blind = b.Error
		case record.SubmissionEvent:
			h.submission, h.ended = new(record.Submission), e.Time
			err = e.Decode(h.submission)
		case record.DeathEvent:
			h.death = new(record.Death)
			err = e.Decode(h.death)
		case record.InterruptEvent:
			h.interrupt = true
		case record.SnapshotEvent, record.RestoreEvent:
			h.search = true
		case record.ModelEvent:
			err = h.models.add(e)
		case record.GroupEvent, record.MessageEvent, record.TurnEvent:
			err = h.group.add(e)
		case record.JudgementEvent:
			h.judgement = new(grade.Judgement)
			err = e.Decode(h.judgement)
		case record.LookEvent:
			var l grade.Look
			err = e.Decode(&l)
			h.looks = append(h.looks, l)
		}
		if err != nil {
			return nil, err
		}
	}
	if h.truth.ID == "" && h.submission != nil {
		return nil, errors.New("the record has no problem in it")
	}
	if h.began.IsZero() {
		h.began = h.ended
	}
	for _, w := range doings(h.journal) {
		h.changes.add(w, h.truth.Namespace) // It is known only now: the truth comes after the writes.
	}
	return h, nil
}

// Grade judges a run by its record alone. The same record always gives the same verdict.
func Grade(rec *record.Record) (Verdict, error) {
	h, err := decode(rec)
	if err != nil {
		return Verdict{}, err
	}
	if h.submission == nil {
		return Verdict{Inconclusive, "the record ends before the agent was done", h.metrics(nil)}, nil
	}
	if h.truth.Shadow {
		return h.judgeShadow(), nil
	}
	if h.truth.Offline {
		return h.judgeOffline(), nil
	}
	v := h.verdict
	switch h.truth.Task {
	case problem.Incident:
		v = h.judgeIncident
	case problem.OnCall:
		v = h.judgeShift
	}
	judged := v()
	h.addDecoys(judged.Results)
	h.addSafety(judged.Results)
	if h.search {
		judged = judged.ofSearch()
	}
	return judged, nil
}

// ofSearch is the verdict on an episode of a search: one that would count does not, and tells what it would be.
func (v Verdict) ofSearch() Verdict {
	if v.Class != Solved && v.Class != AgentFailed {
		return v
	}
	v.Results["search"] = string(v.Class)
	return Verdict{Searched, "in a search: " + v.Why, v.Results}
}

// verdict is that on one question.
func (h *history) verdict() Verdict {
	s := h.submission
	if c := Class(s.Class); !s.Submitted && c != AgentFailed {
		return Verdict{c, s.Reason, h.metrics(nil)}
	}
	if h.death != nil {
		return h.judgeDead()
	}
	if len(h.looks) == 0 || h.blind != "" {
		if v, judged := h.unseen(); judged {
			return v
		}
	}
	return h.judge()
}

// judgeDead grades a run whose environment died, as far as the record allows: an answer that was
// submitted is right or wrong all the same, and a mitigation counts if it had held before.
func (h *history) judgeDead() Verdict {
	res, err := h.compare()
	switch {
	case err != nil:
		return Verdict{GraderFailed, err.Error(), h.metrics(nil)}
	case h.truth.byState() && !res.Success():
		return Verdict{Class(h.death.Class), h.death.Why, h.metrics(res)}
	case !h.submission.Submitted && !h.truth.byState():
		res["success"] = false
		return Verdict{AgentFailed, h.submission.Reason, h.metrics(res)}
	case res.Success():
		return Verdict{Solved, h.praise(), h.metrics(res)}
	}
	return Verdict{AgentFailed, h.blame(res), h.metrics(res)}
}

// components are those that are faulty, with all names that they go by in this run.
func (h *history) components() []problem.Component {
	list := slices.Clone(h.truth.Answer.Components)
	for i, c := range list {
		for _, f := range h.faults {
			list[i].Aliases = slices.Concat(list[i].Aliases, f.Names[c.Name])
		}
	}
	return list
}

// compare holds what the agent submitted, or the system that it left, against what is right.
func (h *history) compare() (res grade.Result, err error) {
	answer := decodeAnswer(h.submission.Answer)
	switch h.truth.Task {
	case problem.Detection:
		res = grade.Detection(answer, h.truth.correct().(string))
	case problem.Localization:
		res = grade.Localization(answer, h.components())
	case problem.Analysis:
		var causes []fault.Cause
		if c := h.truth.Answer.Cause; c != nil {
			causes = append([]fault.Cause{*c}, h.truth.Answer.Also...)
		}
		res = grade.Analysis(answer, causes)
	case problem.Mitigation:
		res = grade.Mitigation(h.baseline, h.looks, h.hold)
	case problem.Operation:
		if h.truth.Goal == nil {
			return nil, errors.New("the record has an operation without a goal")
		}
		res = grade.Operation(h.truth.Goal, h.began, h.baseline, h.looks, h.hold.Least(), answer)
	default:
		return nil, fmt.Errorf("the record has a task %q", h.truth.Task)
	}
	return res, nil
}

// judge grades a run that came to its end.
func (h *history) judge() Verdict {
	res, err := h.compare()
	if err != nil {
		return Verdict{GraderFailed, err.Error(), h.metrics(nil)}
	}
	if !h.submission.Submitted && !h.truth.byState() {
		res["success"] = false
		return Verdict{AgentFailed, h.submission.Reason, h.metrics(res)}
	}
	if class, why := h.excuse(res); class != "" {
		return Verdict{class, why, h.metrics(res)}
	}
	if h.interrupt && h.truth.byState() && !res.Success() {
		return Verdict{Inconclusive, "interrupted before it was clear how the system fares", h.metrics(res)}
	}
	if res.Success() {
		return Verdict{Solved, h.praise(), h.metrics(res)}
	}
	return Verdict{AgentFailed, h.blame(res), h.metrics(res)}
}

func (h *history) praise() string {
	switch {
	case h.truth.Task == problem.Operation && len(h.truth.Goal.Want) == 0:
		return "the report is right"
	case h.truth.Task == problem.Operation:
		return fmt.Sprintf("what was asked for is done, and has held for %v", h.hold)
	}
	if h.truth.Task == problem.Mitigation {
		return fmt.Sprintf("the system has been well for %v", h.hold)
	}
	return "the answer is right"
}

func (h *history) blame(res grade.Result) string {
	if h.truth.Task == problem.Operation {
		c, _ := res["complaints"].([]string)
		return "what was asked for is not done: " + strings.Join(c, "; ") + h.inTheWay()
	}
	if h.truth.Task == problem.Mitigation {
		if c, _ := res["complaints"].([]string); len(c) > 0 {
			return "the system is not well: " + strings.Join(c, "; ") + h.inTheWay()
		}
		return "the system is not well"
	}
	right := []byte("nothing")
	if c := h.truth.correct(); c != nil {
		right, _ = json.Marshal(c)
	}
	answer := string(h.submission.Answer)
	if answer == "" || answer == "null" {
		answer = "nothing"
	}
	return fmt.Sprintf("submitted %s, right is %s", answer, right)
}

// metrics adds what is measured of every run.
func (h *history) metrics(res grade.Result) grade.Result {
	if res == nil {
		res = grade.Result{"success": false}
	}
	in, out := aci.NextAction, ""
	actions := map[string]int{}
	invalid := 0
	for _, s := range h.steps {
		in += s.Observation + "\n" + aci.NextAction
		out += s.Response
		if s.Action == "" {
			invalid++
		} else {
			actions[s.Action]++
		}
	}
	if key, ok := grade.TimeKeys[h.truth.Task]; ok {
		res[key] = h.ended.Sub(h.began).Seconds()
	}
	res["steps"] = len(h.steps)
	res["in_tokens"], res["out_tokens"] = token.Count(in), token.Count(out)
	res["actions"], res["invalid_actions"] = actions, invalid
	res["writes"] = h.writes
	if h.briefing.Policy != "" {
		n, approved := asked(h.journal)
		res["policy"], res["asked"], res["approved"] = h.briefing.Policy, n, approved
		if n > 0 {
			actions["ask_approval"] = n // To ask costs somebody's time.
		}
	}
	if h.briefing.Unconfined != "" {
		res["unconfined"] = h.briefing.Unconfined
	}
	h.models.addTo(res)
	h.group.addTo(res, h.truth.about())
	if h.judgement != nil {
		res["reasoning_score"], res["reasoning_judgement"] = h.judgement.Score, h.judgement.Text
	}
	if c := h.truth.correct(); c != nil {
		res["correct_answer"] = c
	}
	return res
}
