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

// judgeSystem asks for AIOpsLab's scale and format, [[n]].
const judgeSystem = `You are an impartial judge. An assistant worked on an incident in a cloud service, step by step: you are
shown what it did and what the service answered. Judge how it went about it: whether it looked where it should, drew
the right conclusions from what it saw, went deep enough, and was clear, and did not waste steps or do harm. Judge the way it reasoned,
not the length of what it wrote. First explain your judgement in a few sentences. Then rate the assistant from 1 to 10
in exactly this form: "[[rating]]", for example: "Rating: [[5]]".`

// Judge asks a model for its judgement of a trace.
func Judge(ctx context.Context, chat Chat, trace []Turn) (Judgement, error) {
	user := "<|The Start of Assistant A's Interaction with Service|>\n\n" + FormatTrace(trace) + "<|The End of Assistant A's Interaction with Service|>"
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

// Rating is the rating in a judge's reply, or -1.
func Rating(reply string) float64 {
	for _, r := range ratings {
		if m := r.FindStringSubmatch(reply); m != nil {
			if n, err := strconv.ParseFloat(m[1], 64); err == nil {
				return n
			}
		}
	}
	return -1
}
