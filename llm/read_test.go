package llm

import (
	"context"
	"testing"
)

func TestRead(t *testing.T) {
	tools := []Tool{{Name: "submit", Doc: "Ends it.", Schema: []byte(`{}`)}}
	for _, tt := range []struct {
		name  string
		reply Reply
		want  Reply
	}{
		{"plain", Reply{Text: "so", Usage: Usage{In: 5, Out: 2}}, Reply{Text: "so", Usage: Usage{In: 5, Out: 2}}},
		{"thoughts in both places", Reply{Text: "<think>b</think>so", Thoughts: "a", Usage: Usage{In: 5, Out: 2}}, Reply{Text: "so", Thoughts: "a\n\nb", Usage: Usage{In: 5, Out: 2}}},
		{"cut in a thought", Reply{Text: "<think>a<think>b</think>c", Stop: Length, Usage: Usage{In: 5, Out: 2}}, Reply{Thoughts: "a<think>b</think>c", Stop: Length, Usage: Usage{In: 5, Out: 2}}},
		// 2 + 4 tokens for the message, and 6 for the tool.
		{"no usage", Reply{Text: "so it is"}, Reply{Text: "so it is", Usage: Usage{In: 12, Out: 3, Estimated: true}}},
		{"no usage, thoughts and calls", Reply{Thoughts: "so it is", Calls: []ToolCall{{Name: "submit", Arguments: `{}`}}}, Reply{Thoughts: "so it is", Calls: []ToolCall{{Name: "submit", Arguments: `{}`}}, Usage: Usage{In: 12, Out: 5, Estimated: true}}},
		{"half a usage", Reply{Text: "so it is", Usage: Usage{In: 7}}, Reply{Text: "so it is", Usage: Usage{In: 7, Out: 3, Estimated: true}}},
		{"nothing said", Reply{Usage: Usage{In: 7}}, Reply{Usage: Usage{In: 7}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Read(&fake{chat: func(context.Context, Request) (Reply, error) { return tt.reply, nil }})
			got, err := m.Chat(context.Background(), Request{Messages: []Message{{Role: User, Text: "Say it"}}, Tools: tools})
			if err != nil || got.Text != tt.want.Text || got.Thoughts != tt.want.Thoughts || got.Usage != tt.want.Usage {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// Whoever asks is told of each attempt that another follows.
func TestAgain(t *testing.T) {
	var told []Attempt
	m := Retry(failing(&Failure{Status: 503, After: 0}, &Failure{Status: 429, Message: "slow down, sk-0123456789abcdefghij", After: 0}), Patience{})
	_, err := m.Chat(context.Background(), Request{Again: func(a Attempt) { told = append(told, a) }})
	if err != nil || len(told) != 2 || told[0].Number != 1 || told[0].Error != "503 Service Unavailable" || told[1].Error != "429 Too Many Requests: slow down, [redacted]" || told[1].Model != "fake" {
		t.Errorf("told %+v, %v", told, err)
	}
}
