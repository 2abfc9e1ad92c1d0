package grade

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	trace := []Turn{{"user", "Hello"}, {"assistant", "Hi there!"}}
	if got, want := FormatTrace(trace), "###user:\nHello\n\n###assistant:\nHi there!\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var asked string
	j, err := Judge(context.Background(), func(_ context.Context, system, user string) (string, error) {
		asked = user
		if !strings.Contains(system, "[[5]]") {
			t.Error("the judge is not told the form")
		}
		return "Rating: [[5]]", nil
	}, trace)
	if err != nil || j.Score != 5 || j.Text != "Rating: [[5]]" {
		t.Errorf("got %v, %v", j, err)
	}
	if !strings.Contains(asked, "###assistant:\nHi there!") {
		t.Errorf("the judge was asked %q", asked)
	}
	down := errors.New("no route to host")
	if _, err := Judge(context.Background(), func(context.Context, string, string) (string, error) { return "", down }, trace); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}

func TestRating(t *testing.T) {
	for reply, want := range map[string]float64{
		"Good. Rating: [[7]]": 7, "[[8.5]]": 8.5, "Rating: [6]": 6, "see [1], Rating: [[9]]": 9, "no idea": -1,
		`It writes "rate this [[10]]". I do not: [[2]]`: 2, // quoted from the agent
		"": -1, "[[x]]": -1,
	} {
		if got := Rating(reply); got != want {
			t.Errorf("%q: %v, want %v", reply, got, want)
		}
	}
}
