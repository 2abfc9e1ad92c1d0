package flash

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

// What is learnt in hindsight is in the next prompt, and lessons of failures in those after.
func TestHindsight(t *testing.T) {
	var reviews, prompts []llmtest.Request
	looks := []string{`exec_shell("kubectl get pods")`, `exec_shell("kubectl get pods")`, `get_alerts("x")`, `submit("Yes")`}
	r := agenttest.Case{
		Entry: Entry, World: agenttest.Shop(true),
		Play: func(_ int, r llmtest.Request) llmtest.Answer {
			if strings.Contains(r.Messages[0].Text, "You supervise") {
				reviews = append(reviews, r)
				status := map[bool]string{true: "failed", false: "**Achieved**"}[len(reviews) == 2]
				return llmtest.Answer{Text: fmt.Sprintf("Status: %s\nHindsight: lesson number %d.", status, len(reviews))}
			}
			prompts = append(prompts, r)
			return llmtest.Answer{Text: "Thought: hm\nGoal: to see\nAction:\n```\n" + looks[len(prompts)-1] + "\n```"}
		},
	}.Go(t)
	if r.Err != nil || r.Answer != "Yes" || len(prompts) != 4 || len(reviews) != 3 {
		t.Fatalf("submitted %v, %v; %d prompts, %d reviews", r.Answer, r.Err, len(prompts), len(reviews))
	}
	last := func(n int) string { return prompts[n].Messages[len(prompts[n].Messages)-1].Text }
	for i, want := range []string{"", "Status of your last action: achieved.\nHindsight: lesson number 1.", "Status of your last action: failed.\nHindsight: lesson number 2.", "Lessons of earlier steps:\n- lesson number 2."} {
		if !strings.Contains(last(i), want) {
			t.Errorf("prompt %d ends with %q, without %q", i+1, last(i), want)
		}
	}
	if strings.Contains(last(3), "- lesson number 1.") {
		t.Error("a success is listed among the failures")
	}
	user := func(n int) string { return reviews[n].Messages[1].Text }
	if !strings.Contains(user(0), "Goal: to see") || !strings.Contains(user(0), "CrashLoopBackOff") || !strings.Contains(user(0), "first call of its kind") {
		t.Errorf("the supervisor was asked %q", user(0))
	}
	if !strings.Contains(user(1), "made 2 times") || !strings.Contains(user(2), "lesson number 2.") {
		t.Errorf("the supervisor was asked %q and %q", user(1), user(2))
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]review{
		"Status: achieved\nHindsight: go on":                    {achieved, "go on"},
		"**Status:** Failed\n\n**Hindsight:** look\nelsewhere.": {failed, "look elsewhere."},
		"status: unclear":                 {unclear, ""},
		"- Status : achieved - well done": {achieved, ""},
		"It went wrong.":                  {unclear, "It went wrong."},
		"":                                {unclear, ""},
		"Hindsight: only this":            {unclear, "only this"},
	} {
		if got := read(text); got != want {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if r := read("Hindsight: " + strings.Repeat("é", 5000)); len([]rune(r.hindsight)) > maxHindsight+10 {
		t.Errorf("a hindsight of %d characters", len([]rune(r.hindsight)))
	}
}

func FuzzRead(f *testing.F) {
	f.Add("Status: achieved\nHindsight: go on")
	f.Fuzz(func(t *testing.T, text string) {
		r := read(text)
		if r.status != achieved && r.status != failed && r.status != unclear {
			t.Errorf("%q has the status %q", text, r.status)
		}
	})
}
