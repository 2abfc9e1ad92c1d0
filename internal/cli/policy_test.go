package cli

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
)

var aQuestion = guard.Question{
	Change: policy.Change{Verb: "delete", Resource: "pods", Name: "geo-1", Namespace: "shop"}, Risk: policy.Medium,
	Because: "it stops something", Policy: "careful",
}

func TestAskPerson(t *testing.T) {
	for line, want := range map[string]guard.Answer{
		"y\n":                {Approved: true, By: "a person"},
		"Yes, it is night\n": {Approved: true, By: "a person", Why: "it is night"},
		"n too risky\n":      {By: "a person", Why: "too risky"},
		"certainly\n":        {By: "a person", Why: "certainly"},
		"\n":                 {By: "a person"},
		"":                   {By: "a person", Why: "nobody answered"},
		"y":                  {Approved: true, By: "a person"},
	} {
		var out bytes.Buffer
		if got := askPerson(bufio.NewReader(strings.NewReader(line)), &out, aQuestion); got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
		if !strings.Contains(out.String(), "delete pods geo-1 in shop") || !strings.Contains(out.String(), "risk medium") {
			t.Errorf("%s", out.String())
		}
	}
}

func TestAskCommand(t *testing.T) {
	for command, want := range map[string]guard.Answer{
		`grep -q '"name":"geo-1"' && echo fine`: {Approved: true, Why: "fine"},
		`echo no; echo more; exit 1`:            {Why: "no"},
		`exit 3`:                                {Why: "exit status 3"},
	} {
		want.By = command
		if got := askCommand(t.Context(), command, aQuestion); got != want {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
	}
}
