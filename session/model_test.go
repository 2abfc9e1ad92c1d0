package session

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// parrot is a model that says the last message back. A dollar buys a million tokens read, or half a
// million written.
type parrot struct {
	free  bool // nobody knows what it costs
	fail  error
	asked []llm.Request
}

func (p *parrot) Name() string { return "parrot" }

func (p *parrot) Info() llm.Info {
	if p.free {
		return llm.Info{}
	}
	in, out := 1.0, 2.0
	return llm.Info{In: &in, Out: &out}
}

func (p *parrot) Chat(_ context.Context, r llm.Request) (llm.Reply, error) {
	p.asked = append(p.asked, r)
	if p.fail != nil {
		return llm.Reply{Attempts: 3}, p.fail
	}
	last := r.Messages[len(r.Messages)-1].Text
	return llm.Reply{Text: last, Stop: llm.Done, Usage: llm.Usage{In: 1000, Out: 100}, Cached: last == "old"}, nil
}

// metered returns a model under a budget, and what is recorded of it.
func metered(m llm.Model, b Budget) (*meter, *[]llm.Exchange) {
	var list []llm.Exchange
	return newMeter(m, b, func(kind string, data any) {
		if kind != record.ModelEvent {
			panic(kind)
		}
		list = append(list, data.(llm.Exchange))
	}), &list
}

func say(texts ...string) llm.Request {
	r := llm.Request{Messages: []llm.Message{{Role: llm.System, Text: "be brief"}}}
	for _, t := range texts {
		r.Messages = append(r.Messages, llm.Message{Role: llm.User, Text: t})
	}
	return r
}

func TestMeterRecords(t *testing.T) {
	m, events := metered(&parrot{}, Budget{})
	for _, r := range []llm.Request{
		say("a"), say("a", "b"),
		{Messages: []llm.Message{{Role: llm.System, Text: "judge"}, {Role: llm.User, Text: "x"}}}, // another conversation in between
		say("a", "b", "curl -H 'Authorization: Bearer 0123456789abcdef'"),
		say("a", "[cut]", "old"),
	} {
		if _, err := m.Chat(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	type shape struct{ number, since, kept, messages int }
	for i, want := range []shape{{1, 0, 0, 2}, {2, 1, 2, 1}, {3, 0, 0, 2}, {4, 2, 3, 1}, {5, 4, 2, 2}} {
		x := (*events)[i]
		if got := (shape{x.Number, x.Since, x.Kept, len(x.Messages)}); got != want || x.Model != "parrot" {
			t.Errorf("exchange %d: %+v, want %+v", i+1, got, want)
		}
	}
	b, err := json.Marshal(*events)
	if err != nil || strings.Contains(string(b), "0123456789abcdef") || strings.Count(string(b), "[redacted]") != 2 {
		t.Errorf("the record says %s, %v", b, err)
	}
	if x := (*events)[0]; *x.Cost != 0.0012 || x.Reply.Usage.In != 1000 || x.Reply.Text != "a" {
		t.Errorf("got %+v", x)
	}
	if x := (*events)[4]; *x.Cost != 0 || !x.Reply.Cached {
		t.Errorf("what is cached costs %v", *x.Cost)
	}
}

func TestMeterBudget(t *testing.T) {
	for _, tt := range []struct {
		name      string
		model     *parrot
		budget    Budget
		exchanges int // that are made before the budget is spent
		want      string
		limit     int // of the first reply
	}{
		// An exchange takes 1100 tokens, and the next question has about 15.
		{"tokens", &parrot{}, Budget{Tokens: 3000}, 3, "of 3000 tokens", 2900},
		{"no tokens", &parrot{}, Budget{Tokens: 50}, 0, "0 of 50 tokens", 0},
		// An exchange costs $0.0012; what is left buys replies at $2 a million.
		{"cost", &parrot{}, Budget{Cost: 0.003}, 3, "$0.0036 of $0.0030", 1480},
		{"no price", &parrot{free: true}, Budget{Cost: 1}, 0, "nobody knows what the model parrot costs", 0},
		{"no limit", &parrot{}, Budget{}, 9, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, events := metered(tt.model, tt.budget)
			var err error
			n := 0
			for ; n < 9 && err == nil; n++ {
				_, err = m.Chat(context.Background(), say("hello"))
			}
			if tt.want == "" {
				if err != nil || len(tt.model.asked) != tt.exchanges || tt.model.asked[0].MaxTokens != 0 {
					t.Errorf("%d exchanges, %v", n, err)
				}
				return
			}
			if !errors.Is(err, llm.ErrBudget) || errors.Is(err, agent.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) || len(*events) != tt.exchanges {
				t.Errorf("%d exchanges, %v", len(*events), err)
			}
			if tt.exchanges > 0 {
				if got := tt.model.asked[0].MaxTokens; got < tt.limit || got > tt.limit+100 {
					t.Errorf("the first reply may have %d tokens", got)
				}
			}
		})
	}
}

// A model that cannot be asked is no fault of the agent; a conversation that is too long is.
func TestMeterErrors(t *testing.T) {
	m, events := metered(&parrot{fail: &llm.Failure{Status: 401, Message: "Incorrect API key: sk-abcdefghijklmnopqrst"}}, Budget{})
	_, err := m.Chat(context.Background(), say("a"))
	if s := new(run).failure(err); s.Class != string(Infra) {
		t.Errorf("%v is %s", err, s.Class)
	}
	if x := (*events)[0]; x.Reply.Attempts != 3 || !strings.Contains(x.Error, "401") || strings.Contains(x.Error, "sk-abc") {
		t.Errorf("the record says %+v", x)
	}
	m, _ = metered(&parrot{fail: &llm.Failure{Status: 413}}, Budget{})
	_, err = m.Chat(context.Background(), say("a"))
	if s := new(run).failure(err); s.Class != string(AgentFailed) {
		t.Errorf("%v is %s", err, s.Class)
	}
}

func TestModelResults(t *testing.T) {
	for _, free := range []bool{false, true} {
		file := aRun{task: problem.Detection, answer: "Yes"}.write(t)
		log, err := record.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m := newMeter(&parrot{free: free}, Budget{}, func(kind string, data any) {
			if err := log.Append(kind, data); err != nil {
				t.Error(err)
			}
		})
		for _, text := range []string{"a", "old"} {
			if _, err := m.Chat(context.Background(), say(text)); err != nil {
				t.Error(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		rec, err := record.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Grade(rec)
		if err != nil {
			t.Fatal(err)
		}
		r := v.Results
		if r["model"] != "parrot" || r["model_calls"] != 2 || r["model_in_tokens"] != 2000 || r["model_out_tokens"] != 200 {
			t.Errorf("got %v", r)
		}
		if cost, ok := r["cost_usd"]; !ok || (cost == nil) != free || !free && cost != 0.0012 {
			t.Errorf("free %v: it costs %v", free, cost)
		}
	}
}

func TestNeedsModel(t *testing.T) {
	s := Session{Agent: agent.Entry{Name: "shell", NeedsModel: true}, Problem: &problem.Problem{}, Results: filepath.Join(t.TempDir(), "none")}
	if _, err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "shell needs a model") {
		t.Errorf("got %v", err)
	}
}
