package cli

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// story is what a transcript tells of a short run.
func story(set func(*transcript)) string {
	var b strings.Builder
	t := newTranscript(&b, screen{width: 60})
	set(t)
	thought := "The frontend is slow. " + strings.Repeat("I wonder why that is so. ", 8) + "I look."
	response := thought + "\n" + agent.Call("exec_shell", "kubectl get pods")
	t.event(record.FaultEvent, record.Fault{Kind: "pod_kill", Target: "geo", Symptom: "geo is gone"})
	t.event(record.ActionEvent, record.Action{Number: 1, Response: response})
	t.event(record.WriteEvent, guard.Entry{Verb: "patch", Resource: "deployments", Name: "geo", Status: 200})
	t.event(record.WriteEvent, guard.Entry{Verb: "patch", Resource: "services", Name: "geo", Status: 403})
	t.event(record.StepEvent, record.Step{Number: 1, Response: response, Observation: "NAME\n" + strings.Repeat("a 1/1 Running\n", 20) + "geo 0/1 CrashLoopBackOff\nend"})
	t.event(record.SubmissionEvent, record.Submission{Submitted: true, Answer: []byte(`["geo"]`)})
	t.end(&session.Outcome{Problem: "p-1", Record: "r.jsonl", Session: "r.json", Verdict: session.Verdict{
		Class: session.Solved, Why: "the answer is right", Results: grade.Result{"TTL": 3.0, "steps": 1, "in_tokens": 5, "out_tokens": 6},
	}})
	return b.String()
}

func TestWhatIn(t *testing.T) {
	if got := whatIn(record.Fault{Kind: "redeploy_without_pv"}); got != "redeploy_without_pv" {
		t.Errorf("a fault of the whole application: %q", got)
	}
}

func TestTranscript(t *testing.T) {
	got := story(func(*transcript) {})
	for _, want := range []string{
		"pod_kill in geo shows: geo is gone", "  step 1\n", "  The frontend is slow.", "\n  $ kubectl get pods\n",
		"geo 0/1 CrashLoopBackOff", "more lines", "SOLVED  the answer is right\n", "wrong    pod_kill in geo: geo is gone\n",
		"done     answered [\"geo\"]; changed deployment geo\n", "record   r.jsonl", "aiopslab describe p-1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if n := strings.Count(strings.Join(strings.Fields(got), " "), "I wonder why that is so."); n != 8 {
		t.Errorf("the thought was cut: %d of 8 sentences", n)
	}
	for _, l := range strings.Split(got, "\n") {
		if len([]rune(l)) > 62 {
			t.Errorf("wider than the screen: %q", l)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Error("colours on a screen without")
	}
	if n := strings.Count(got, "step 1"); n != 1 {
		t.Errorf("the step is told %d times", n)
	}
}

func TestSingular(t *testing.T) {
	for resource, want := range map[string]string{
		"deployments": "deployment", "networkpolicies": "networkpolicy", "ingresses": "ingress",
		"storageclasses": "storageclass", "leases": "lease",
	} {
		if got := singular(resource); got != want {
			t.Errorf("one of %s is called %q, not %q", resource, got, want)
		}
	}
}

func TestTranscriptDetail(t *testing.T) {
	if got := story(func(t *transcript) { t.detail = quiet }); !strings.HasPrefix(strings.TrimSpace(got), "SOLVED") {
		t.Errorf("quiet: %s", got)
	}
	if got := story(func(t *transcript) { t.detail = verbose }); strings.Count(got, "a 1/1 Running") != 20 {
		t.Errorf("verbose: %s", got)
	}
	got := story(func(t *transcript) { t.blind, t.silent = true, true })
	before, after, _ := strings.Cut(got, "SOLVED")
	if strings.Contains(before, "geo") || !strings.Contains(after, "geo is gone") {
		t.Errorf("who works on it is told before the end:\n%s", got)
	}
}
