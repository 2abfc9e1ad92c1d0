package grade

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Chat asks a model with a system and a user message, and returns what it says.
type Chat func(ctx context.Context, system, user string) (string, error)

// Turn is one message between an agent and its environment.
type Turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Judgement is what a model thinks of an agent's reasoning.
type Judgement struct {
	Score float64 `json:"score"` // 1 to 10; -1 if the model gave none
	Text  string  `json:"text"`
}

// judgeSystem asks for a rating on AIOpsLab's scale, 1 to 10. Programs that read judgements look for it in
// double brackets, as [[n]].
const judgeSystem = `An engineer worked on an incident in a cloud service, step by step. You are shown what the engineer did and
what came of it. Say how good the work was: did it look in the right places, conclude rightly from what was there to see, go
deep enough, and do no harm and nothing in vain? What counts is the reasoning, not how much of it was written down.
Give your reasons in a few sentences. End with a line that has a number from 1 (useless) to 10 (could not be better) in
double square brackets, such as [[5]].`

// Judge asks a model for its judgement of a trace.
func Judge(ctx context.Context, chat Chat, trace []Turn) (Judgement, error) {
	user := "The work begins here.\n\n" + FormatTrace(trace) + "The work ends here."
	text, err := chat(ctx, judgeSystem, user)
	if err != nil {
		return Judgement{}, fmt.Errorf("ask the judge: %w", err)
	}
	return Judgement{Rating(text), text}, nil
}

// FormatTrace writes a trace as a judge reads it.
func FormatTrace(trace []Turn) string {
	var b strings.Builder
	for _, t := range trace {
		fmt.Fprintf(&b, "###%s:\n%s\n\n", t.Role, t.Content)
	}
	return b.String()
}

var ratings = []*regexp.Regexp{regexp.MustCompile(`\[\[(\d+\.?\d*)\]\]`), regexp.MustCompile(`\[(\d+\.?\d*)\]`)}

// Rating returns the rating in a judge's reply, or -1 if it has none. It is the last one: those before may
// be quoted from the agent, who would like to have them.
func Rating(reply string) float64 {
	for _, r := range ratings {
		if all := r.FindAllStringSubmatch(reply, -1); len(all) > 0 {
			if n, err := strconv.ParseFloat(all[len(all)-1][1], 64); err == nil {
				return n
			}
		}
	}
	return -1
}
