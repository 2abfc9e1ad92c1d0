package aci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/internal/term"
)

// hand hands something in to an inquiry, as an agent writes it.
func hand(t testing.TB, q *inquiry, call string) Result {
	t.Helper()
	c, err := Parse(fenced(call))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := q.submit(t.Context(), nil, c)
	return r
}

// Questions come one after another, whatever is answered. What cannot be an answer is refused, and the question
// stays; what can be one is taken without a word of whether it is right.
func TestInquiry(t *testing.T) {
	q := &inquiry{questions: term.Questions}
	for _, tt := range []struct {
		call, question, next, text string
		answer                     any
	}{
		{call: `submit("maybe")`, text: `the answer is "Yes" or "No", not "maybe"`},
		{call: `submit()`, text: "1 argument missing: has_anomaly"},
		{call: `submit(["geo"])`, text: `not "geo"`},
		{call: `submit("Yes", "No")`, text: "it takes 1 argument, but 2 were given"},
		{call: `submit(faulty_components=["geo"])`, text: "it has no argument faulty_components"},
		{call: `submit("no")`, question: "detection", next: "localization", answer: "no", text: "Question (localization): "},
		{call: `submit(5)`, text: "the answer is a list of names, not 5"},
		{call: `submit([["geo"]])`, text: "a list is no name"},
		{call: `submit({"geo": 1})`, text: "not a dict"},
		{call: `submit(answer=["geo"])`, question: "localization", next: "analysis", answer: []any{"geo"}, text: "LEVEL is one of"},
		{call: `submit("Misconfiguration")`, text: "the answer is a dict"},
		{call: `submit({"system_level": "Application"})`, text: "fault_type is one of Misconfiguration"},
		{call: `submit({"system_level": "Appl", "fault_type": "Misconfiguration"})`, text: "system_level is one of"},
		{
			call: `submit({"system_level": "Hardware", "fault_type": "Misconfiguration", "why": "x"})`,
			text: "there is no key why",
		},
		{
			call:     `submit(analysis={"system_level": "hardware", "fault_type": " code defect "})`,
			question: "analysis", next: "mitigation", text: "Question (mitigation): ",
			answer: map[string]any{"system_level": "hardware", "fault_type": " code defect "},
		},
		{call: `submit({"system_level": "Hardware", "fault_type": "Code Defect"})`, text: "it takes 0 arguments, but 1 were given"},
		{call: `submit()`, question: "mitigation", text: "That was the last question."},
		{call: `submit()`, text: "every question is answered"},
	} {
		r := hand(t, q, tt.call)
		if r.Question != tt.question || r.Next != tt.next || r.Failed != (tt.question == "") ||
			r.Submitted != (tt.question == "mitigation") || !strings.Contains(r.Text, tt.text) {
			t.Errorf("%s: %+v", tt.call, r)
		}
		if diff := cmp.Diff(tt.answer, r.Answer); tt.question != "" && diff != "" {
			t.Errorf("%s: %s", tt.call, diff)
		}
		if word := strings.ToLower(r.Text); strings.Contains(word, "correct") || strings.Contains(word, "wrong answer") {
			t.Errorf("%s: it tells whether that was right: %s", tt.call, r.Text)
		}
		if got := Asked(r.Text + "\n" + NextAction); tt.next != "" && got != tt.next {
			t.Errorf("%s: asks for %q", tt.call, got)
		}
	}
}

// No answer means that there is no fault, where that can be an answer.
func TestInquiryOfHealth(t *testing.T) {
	q := &inquiry{questions: term.Questions}
	for _, call := range []string{`submit(False)`, `submit([])`, `submit()`, `submit()`} {
		if r := hand(t, q, call); r.Failed {
			t.Errorf("%s: %s", call, r.Text)
		}
	}
}

// What is said before the first question is the same for every incident, so that it says nothing about the fault.
func TestIncidentIsTold(t *testing.T) {
	text := Description(term.Incident, shop, "")
	if Asked(text) != term.Detection || strings.Contains(Instructions(term.Incident), "LEVEL") {
		t.Errorf("%s\n%s", text, Instructions(term.Incident))
	}
	if Asked("nothing\n"+NextAction) != "" {
		t.Error("an observation without a question asks one")
	}
}

// The interface of an incident takes its answers as an agent writes them.
func TestIncidentInterface(t *testing.T) {
	i := fake(t, term.Incident, reply("{}"))
	if r := do(t, i, `submit("Yes")`); r.Question != term.Detection || r.Next != term.Mitigation || r.Submitted {
		t.Errorf("%+v", r)
	}
	if r := do(t, i, `submit(answer=None)`); r.Question != term.Mitigation || !r.Submitted {
		t.Errorf("%+v", r)
	}
}

// Whatever an agent submits, a question is answered once or stays.
func FuzzInquiry(f *testing.F) {
	for _, s := range []string{`submit("Yes")`, `submit([["a"], 1])`, `submit({"system_level": ["Hardware"]})`, `submit(answer=None)`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, call string) {
		c, err := Parse(fenced(call))
		if err != nil || c.Name != "submit" {
			return
		}
		q := &inquiry{questions: term.Questions}
		for n := range term.Questions {
			before := q.answered
			r, _ := q.submit(t.Context(), nil, c)
			if r.Failed != (q.answered == before) || r.Failed != (r.Question == "") || q.answered > n+1 {
				t.Fatalf("%q: %+v after %d", call, r, before)
			}
			if r.Failed {
				q.answered++ // Try the next.
			}
		}
	})
}
