package aci

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aiopslab/aiopslab/internal/term"
)

// This file is about incidents: several questions in one run. Each is asked when the one before is answered, whatever
// the answer was, and nothing tells whether it was right. An answer in a form that cannot be one is refused, so that
// no question is lost to a slip; a form that can be wrong or right is taken, and stays.

// incidentDescription is what an agent is told. It is the same for all incidents of an application, so that the
// questions to come say nothing about the fault.
const incidentDescription = `You are on call for this service, which runs on Kubernetes:

%s
You are asked one question after another: whether there is an anomaly, where it comes from, what kind of fault it is,
and to put it right; not every incident has all of these. The next question comes when you have submitted an answer,
whatever the answer was. An answer cannot be taken back, and nobody tells whether it is right. You may look at the
system and change it at any time.

%s`

// incidentAnswer is the type of what an incident's submit takes.
const incidentAnswer = "str | list[str] | dict[str, str]"

// Ask is a question of an incident as an agent is asked it.
func Ask(question string) string {
	t := assignments[question]
	return fmt.Sprintf("Question (%s): %s %s.", question, t.question, t.answer)
}

var askForm = regexp.MustCompile(`(?m)^Question \((` + strings.Join(term.Questions, "|") + `)\): `)

// Asked is the question of an incident that an observation ends with, or "" if it has none.
func Asked(observation string) string {
	all := askForm.FindAllStringSubmatch(observation, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// answering says how the answer of a task is written, or of an incident the first.
func answering(task string) string {
	if task == term.Incident {
		return forms[term.Detection] + "\n\nThe questions after it say how their answers are written."
	}
	return forms[task]
}

// inquiry is where an incident is: which question is to be answered.
type inquiry struct {
	questions []string

	mu       sync.Mutex
	answered int
}

// submit takes the answer to the question at hand. Beside its own name, the argument may have the one that it has
// where the question is all there is to the task.
func (q *inquiry) submit(ctx context.Context, i *Interface, c *Call) (r Result, note string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answered == len(q.questions) {
		return failed("every question is answered"), ""
	}
	question := q.questions[q.answered]
	a := submitAction(question)
	a.loose = false // What is meant for another question is not to end the run.
	args, _, err := a.bind(positional(c))
	if err != nil {
		return refused(question, err), ""
	}
	r = a.do(ctx, i, args)
	if err := formError(question, r.Answer); err != nil {
		return refused(question, err), ""
	}
	q.answered++
	r.Question = question
	if r.Submitted = q.answered == len(q.questions); r.Submitted {
		r.Text += "\nThat was the last question."
		return r, ""
	}
	r.Next = q.questions[q.answered]
	r.Text += "\n\n" + Ask(r.Next) + "\n" + forms[r.Next]
	return r, ""
}

// positional is a call with the argument answer in its place.
func positional(c *Call) *Call {
	answer, ok := c.Kwargs["answer"]
	if !ok || len(c.Args) > 0 || len(c.Kwargs) > 1 {
		return c
	}
	if answer == nil {
		return &Call{Name: c.Name}
	}
	return &Call{Name: c.Name, Args: []any{answer}}
}

// refused is the result of a submission that cannot be an answer. The question stays.
func refused(question string, err error) Result {
	return failed("%s\nNothing was submitted. %s\n%s", strings.TrimPrefix(err.Error(), "Error: "), Ask(question),
		forms[question])
}

// formError says why something cannot be an answer to a question.
func formError(question string, answer any) error {
	if l, ok := answer.([]any); ok && len(l) == 1 && question != term.Localization {
		answer = l[0] // Agents write ["Yes"] for "Yes".
	}
	switch question {
	case term.Detection:
		if b, ok := answer.(bool); ok {
			answer = map[bool]string{true: "Yes", false: "No"}[b]
		}
		s, _ := answer.(string)
		if !slices.Contains([]string{"yes", "no"}, strings.ToLower(strings.TrimSpace(s))) {
			return fmt.Errorf(`the answer is "Yes" or "No", not %s`, describeValue(answer))
		}
	case term.Localization:
		return namesError(answer)
	case term.Analysis:
		return causeError(answer)
	}
	return nil
}

// namesError says why something is no list of names.
func namesError(answer any) error {
	switch v := answer.(type) {
	case nil, string:
		return nil
	case []any:
		for _, e := range v {
			if _, ok := e.(string); !ok {
				return fmt.Errorf("the answer is a list of names, and %s is no name", describeValue(e))
			}
		}
		return nil
	}
	return fmt.Errorf("the answer is a list of names, not %s", describeValue(answer))
}

// causeError says why something is no root cause: it must have both parts, in the words there are.
func causeError(answer any) error {
	dict, ok := answer.(map[string]any)
	if answer == nil || ok && len(dict) == 0 {
		return nil // There is no fault.
	}
	if !ok {
		return fmt.Errorf("the answer is a dict with system_level and fault_type, not %s", describeValue(answer))
	}
	for _, key := range []string{"system_level", "fault_type"} {
		s, _ := dict[key].(string)
		s = strings.TrimSpace(s)
		if !slices.ContainsFunc(analysisFields[key], func(v string) bool { return strings.EqualFold(v, s) }) {
			return fmt.Errorf("%s is one of %s, not %s", key, strings.Join(analysisFields[key], ", "),
				describeValue(dict[key]))
		}
	}
	for key := range dict {
		if analysisFields[key] == nil {
			return fmt.Errorf("there is no key %s, only system_level and fault_type", short(key))
		}
	}
	return nil
}
