// Package flash is an agent after Zhang et al., "FLASH: A Workflow Automation Agent for Diagnosing
// Recurring Incidents" (2024), in the simplified form that the AIOpsLab paper compares: after every
// action, a second question to the model decides whether the action achieved what it was for, and what
// is to be learnt from it. Status and hindsight are part of the next prompt.
package flash

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/record"
)

// Entry is the agent.
var Entry = agent.Entry{
	Name: "flash", Doc: "a model that supervises its own steps and learns from them",
	NeedsModel: true, New: newAgent,
}

//go:embed prompts
var files embed.FS

var (
	prompt    = conversation.MustRead(files, "prompts/prompt.md", "flash/prompt")
	supervise = conversation.MustRead(files, "prompts/supervise.md", "flash/supervise")
)

// maxLessons is how many lessons of failed steps are kept before the model's eyes.
const maxLessons = 5

type flash struct {
	c       *conversation.Conversation
	s       supervisor
	last    string   // response
	lessons []string // of steps that failed, the newest last
}

func newAgent(b agent.Briefing) (agent.Agent, error) {
	c, err := conversation.New(b, prompt, b.Actions, false)
	if err != nil {
		return nil, err
	}
	if b.Note != nil {
		b.Note(record.PromptEvent, supervise.Prompt)
	}
	return &flash{c: c, s: supervisor{model: b.Model, description: b.Description, made: map[string]int{}}}, nil
}

// Act looks back at the last action, and takes the next.
func (f *flash) Act(ctx context.Context, observation string) (string, error) {
	if f.last != "" {
		review, err := f.s.review(ctx, f.last, observation, f.lessons)
		if err != nil {
			return "", err
		}
		observation += f.learn(review)
	}
	reply, err := f.c.Next(ctx, observation)
	f.last = reply.Text
	return reply.Text, err
}

// learn returns what a review adds to the next prompt.
func (f *flash) learn(r review) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nStatus of your last action: %s.", r.status)
	if r.hindsight != "" {
		fmt.Fprintf(&b, "\nHindsight: %s", r.hindsight)
	}
	if len(f.lessons) > 0 {
		fmt.Fprintf(&b, "\nLessons of earlier steps:\n- %s", strings.Join(f.lessons, "\n- "))
	}
	if r.status != achieved && r.hindsight != "" {
		f.lessons = append(f.lessons, r.hindsight)
		f.lessons = f.lessons[max(0, len(f.lessons)-maxLessons):]
	}
	return b.String()
}
