package flash

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/llm"
)

// The states of an action.
const (
	achieved = "achieved"
	failed   = "failed"
	unclear  = "unclear"
)

// How much of a response, an observation and a hindsight is looked at, in characters.
const (
	maxResponse    = 2000
	maxObservation = 6000
	maxHindsight   = 800
)

// review is what looking back at an action came to.
type review struct{ status, hindsight string }

// supervisor looks back at actions.
type supervisor struct {
	model       llm.Model
	description string
	made        map[string]int // how often each call was made
}

// review asks the model whether an action achieved what it was for.
func (s *supervisor) review(ctx context.Context, response, observation string, lessons []string) (review, error) {
	facts := s.facts(response)
	system, user := supervise.Fill(
		"description", s.description, "response", shorten(response, maxResponse), "observation",
		shorten(observation, maxObservation), "facts", facts, "lessons", strings.Join(lessons, "\n"),
	)
	reply, err := s.model.Chat(ctx, llm.Request{
		Messages: []llm.Message{{Role: llm.System, Text: system}, {Role: llm.User, Text: user}},
	})
	if err != nil {
		return review{}, fmt.Errorf("look back at the last action: %w", err)
	}
	return read(reply.Text), nil
}

// facts is what is known of an action without a model: that it cannot be read, or is not the first of
// its kind.
func (s *supervisor) facts(response string) string {
	call, err := aci.Parse(response)
	if err != nil {
		return "No API call could be read from the response, so nothing was done."
	}
	key := fmt.Sprintf("%s %q %q", call.Name, call.Args, call.Kwargs)
	s.made[key]++
	if n := s.made[key]; n > 1 {
		return fmt.Sprintf("The same call has now been made %d times.", n)
	}
	return "It is the first call of its kind."
}

var (
	statusLine    = regexp.MustCompile(`(?im)^\W*status\W*:\W*(achieved|failed|unclear)\b`)
	hindsightLine = regexp.MustCompile(`(?ims)^\W*hindsight\W*:[*\s]*(.*)`)
)

// read reads a review. What does not have the form is taken for the hindsight.
func read(text string) review {
	r := review{status: unclear, hindsight: text}
	if m := statusLine.FindStringSubmatch(text); m != nil {
		r.status, r.hindsight = strings.ToLower(m[1]), ""
	}
	if m := hindsightLine.FindStringSubmatch(text); m != nil {
		r.hindsight = m[1]
	}
	r.hindsight = shorten(strings.Join(strings.Fields(r.hindsight), " "), maxHindsight)
	return r
}

// shorten takes the middle out of a long text.
func shorten(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most/2]) + " [...] " + string(r[len(r)-most/2:])
}
