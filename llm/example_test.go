package llm_test

import (
	"context"
	"fmt"

	"github.com/aiopslab/aiopslab/llm"
)

// parrot is a model of one's own: it says what it was told last.
type parrot struct{}

func (parrot) Name() string { return "parrot" }

// Info has the prices, in dollars for a million tokens.
func (parrot) Info() llm.Info {
	in, out := 0.5, 2.0
	return llm.Info{In: &in, Out: &out, Window: 4096}
}

func (parrot) Chat(_ context.Context, r llm.Request) (llm.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	return llm.Reply{Text: last.Text, Stop: llm.Done, Usage: llm.Usage{In: 2_000_000, Out: 500_000}}, nil
}

// Any model is asked in the same way, and what it costs is known from its usage.
func Example() {
	var m llm.Model = llm.Retry(parrot{}, llm.DefaultPatience)
	reply, err := m.Chat(context.Background(), llm.Request{Messages: []llm.Message{
		{Role: llm.System, Text: "You are an engineer on call."},
		{Role: llm.User, Text: "Is geo well?"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cost, known := m.Info().Cost(reply.Usage)
	fmt.Println(reply.Text)
	fmt.Printf("$%.2f, known: %v\n", cost, known)
	// Output:
	// Is geo well?
	// $2.00, known: true
}
