package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// This file judges incidents. Each question has a verdict of its own, which is the one that a run with this question
// alone would have, from the same record: an answer counts as it was when it was given, and the system as it was left.
// So a run that was cut short still tells how far the agent came, and a question that cannot be judged does not spoil
// the others.

// questionsOf are those of an incident, as the agent's interface takes them.
func questionsOf(p *problem.Problem) (list []string) {
	if p.Task == problem.Incident {
		for _, q := range p.Questions() {
			list = append(list, string(q))
		}
	}
	return list
}

// asking is the truth about one question of an incident.
func (t truth) asking(q problem.Task) truth {
	t.Task, t.Questions = q, nil
	return t
}

// answer is one to a question of an incident, as the record has it.
type answer struct {
	record.Answer
	time   time.Time
	writes int // before it
}

// answered returns the answer to a question, or nil.
func (h *history) answered(q problem.Task) *answer {
	i := slices.IndexFunc(h.answers, func(a answer) bool { return a.Question == string(q) })
	if i < 0 {
		return nil
	}
	return &h.answers[i]
}

// asking is the history of an incident as far as one question goes: what it would be if nothing else had been asked.
func (h *history) asking(q problem.Task) *history {
	s := *h
	s.truth, s.mends = h.truth.asking(q), slices.Contains(h.truth.Questions, problem.Mitigation)
	s.models, s.judgement, s.group = modelUse{}, nil, groupUse{} // They are of the whole run.
	a := h.answered(q)
	if a == nil {
		none := *h.submission
		none.Submitted, none.Answer = false, nil
		s.submission = &none
		return &s
	}
	s.submission = &record.Submission{Submitted: true, Answer: a.Answer.Answer}
	s.ended, s.writes = a.time, a.writes
	s.steps = h.steps[:min(a.Step, len(h.steps))]
	return &s
}

// stageKeys are the results of the questions that are those of the whole run as well, by AIOpsLab's names. No two
// questions share one.
var stageKeys = []string{
	"Detection Accuracy", "Localization Accuracy", "is_subset", "top_1", "top_3", "system_level_correct",
	"fault_type_correct", "complaints", "TTD", "TTL", "TTA", "TTM",
}

// judgeIncident is the verdict on an incident: solved if every question is, failed if the agent failed one.
func (h *history) judgeIncident() Verdict {
	res := grade.Result{"success": false}
	stages := map[problem.Task]grade.Result{}
	classes := map[problem.Task]Class{}
	var verdicts []Verdict
	for _, q := range h.truth.Questions {
		v := h.asking(q).verdict()
		classes[q] = v.Class
		stages[q] = h.stage(q, v)
		for _, key := range stageKeys {
			if value, ok := stages[q][key]; ok {
				res[key] = value
			}
		}
		v.Why = fmt.Sprintf("%s: %s", q, v.Why)
		verdicts = append(verdicts, v)
	}
	res["stages"] = stages
	if found := classes[problem.Localization]; len(h.truth.Faults) > 0 && classes[problem.Mitigation] == Solved &&
		(found == Solved || found == AgentFailed) {
		res["lucky_fix"] = found == AgentFailed
	}
	class, why := h.sumUp(verdicts)
	res["success"] = class == Solved
	return Verdict{class, why, h.metrics(res)}
}

// stage is what the results tell of one question.
func (h *history) stage(q problem.Task, v Verdict) grade.Result {
	res := v.Results
	res["class"], res["why"] = v.Class, v.Why
	for _, key := range []string{"actions", "invalid_actions"} {
		delete(res, key) // The whole run has them.
	}
	switch a := h.answered(q); {
	case a != nil:
		res["answer"] = a.Answer.Answer
	case q != problem.Mitigation:
		delete(res, grade.TimeKeys[q]) // There was no such moment.
	}
	return res
}

// sumUp makes one verdict of those on the questions. A question that the agent failed decides, whatever could not be
// judged beside it.
func (h *history) sumUp(verdicts []Verdict) (Class, string) {
	class := Solved
	for _, v := range verdicts {
		switch {
		case v.Class == AgentFailed:
			class = AgentFailed
		case v.Class != Solved && class == Solved:
			class = v.Class
		}
	}
	if len(verdicts) == 0 {
		return GraderFailed, "the record has an incident without questions"
	}
	var why []string
	for _, v := range verdicts {
		if v.Class == class {
			why = append(why, v.Why)
		}
	}
	if class == Solved {
		return class, fmt.Sprintf("all %d questions are answered right: %s", len(verdicts), strings.Join(why, "; "))
	}
	return class, strings.Join(why, "; ")
}
