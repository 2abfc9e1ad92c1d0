package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/connect"
	"github.com/aiopslab/aiopslab/session"
)

// modelHint says how a model is given.
const modelHint = "Name one, as --model openai/gpt-4o with OPENAI_API_KEY (and OPENAI_BASE_URL for another " +
	"endpoint), or --model anthropic/claude-sonnet-4-5 with ANTHROPIC_API_KEY."

// modelFlags say which model an agent has, and what it may cost.
type modelFlags struct {
	model    string
	judge    string
	prices   string
	cost     float64
	tokens   int
	cache    string
	window   int
	thoughts string
	timeout  time.Duration
}

// modelForms is how a model is named.
const modelForms = "openai/NAME, azure/NAME, anthropic/NAME, or NAME at OPENAI_BASE_URL"

func (f *modelFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "the agent's `model`: "+modelForms)
	c.Flags().Float64Var(&f.cost, "max-cost", 0, "how many dollars the agent's model may cost; 0 is no limit")
	f.addEvery(c)
}

// addEvery adds the flags that hold for any number of models and runs.
func (f *modelFlags) addEvery(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.judge, "judge", "", "have a `model` score the agent's reasoning")
	flags.StringVar(&f.prices, "prices", "", "YAML `file` with prices and windows of models")
	flags.IntVar(&f.tokens, "max-tokens", 0,
		"how many tokens the agent's model may read and write in all; 0 is no limit")
	flags.StringVar(&f.cache, "model-cache", "",
		"keep the replies of models in a `directory`, and give them again when the same is asked")
	flags.IntVar(&f.window, "context-window", 0, "how many tokens the model reads, if other than known")
	flags.StringVar(&f.thoughts, "model-thoughts", "",
		"what becomes of the model's thoughts in its next prompt: `back` or forget; found out if not given")
	flags.DurationVar(&f.timeout, "model-timeout", llm.DefaultPatience.Timeout, "how long a model has for one reply")
}

// open returns the model of an agent, or nil if none is named.
func (f *modelFlags) open(s *State, a agent.Entry) (llm.Model, error) {
	switch {
	case f.cost < 0 || f.tokens < 0 || f.window < 0:
		return nil, fail(ExitUsage, errors.New("--max-cost, --max-tokens and --context-window cannot be negative"), "")
	case f.model == "" && a.NeedsModel:
		return nil, fail(ExitUsage, fmt.Errorf("the agent %s needs a model", a.Name), modelHint)
	case f.model == "":
		return nil, nil
	}
	m, err := f.connect(s, "--model", f.model)
	if err != nil {
		return nil, err
	}
	if f.cost > 0 && !m.Info().Priced() {
		return nil, fail(ExitUsage, fmt.Errorf("--max-cost: nobody knows what the model %s costs", m.Name()),
			fmt.Sprintf("Give its prices for a million tokens with --prices FILE, with a line such as '%s: {in: 1, "+
				"out: 2}'; --max-tokens needs none.", m.Name()))
	}
	return m, nil
}

// budget is what the agent's model may cost.
func (f *modelFlags) budget() session.Budget {
	return session.Budget{Cost: f.cost, Tokens: f.tokens}
}

// openJudge returns the judge, or nil.
func (f *modelFlags) openJudge(s *State) (grade.Chat, error) {
	if f.judge == "" {
		return nil, nil
	}
	m, err := f.connect(s, "--judge", f.judge)
	if err != nil {
		return nil, err
	}
	return llm.Ask(m), nil
}

// check asks the models that are named for a word, before anything that takes time: a wrong key, name or
// address is told at once.
func (f *modelFlags) check(ctx context.Context, s *State) error {
	for _, m := range []struct{ flag, name string }{{"--model", f.model}, {"--judge", f.judge}} {
		if m.name == "" {
			continue
		}
		c, err := f.config(s, m.name)
		if err != nil {
			return err
		}
		if err := connect.Check(ctx, c); err != nil {
			code, hint := modelTrouble(err, m.name)
			return fail(code, fmt.Errorf("%s %s cannot be asked: %w", m.flag, m.name, err), hint)
		}
	}
	return nil
}

// modelTrouble is the exit code for a model that cannot be asked, and what to do.
func modelTrouble(err error, name string) (code int, hint string) {
	prefix := "OPENAI"
	switch provider, _, _ := strings.Cut(name, "/"); provider {
	case "azure":
		prefix = "AZURE_OPENAI"
	case "anthropic":
		prefix = "ANTHROPIC"
	}
	f, ok := errors.AsType[*llm.Failure](err)
	switch {
	case !ok:
		return ExitEnvironment, ""
	case f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden:
		return ExitUsage, fmt.Sprintf("Set %s_API_KEY, or the file that %[1]s_API_KEY_FILE names, to a key that the "+
			"endpoint takes.", prefix)
	case f.Status == http.StatusNotFound, f.Code == "model_not_found":
		return ExitUsage, "Is that the model's name there, and the address right? It is PROVIDER/NAME, or NAME at " +
			"OPENAI_BASE_URL, which mostly ends in /v1."
	case f.Status == 0:
		return ExitEnvironment, fmt.Sprintf(
			"Does the endpoint run, and is its address right? %s_BASE_URL or the like says where it is.", prefix)
	}
	return ExitEnvironment, ""
}

func (f *modelFlags) connect(s *State, flag, name string) (llm.Model, error) {
	c, err := f.config(s, name)
	if err != nil {
		return nil, err
	}
	m, err := connect.Open(c)
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("%s: %w", flag, err), "")
	}
	return m, nil
}

// config says how a model is asked.
func (f *modelFlags) config(s *State, name string) (connect.Config, error) {
	c := connect.Config{
		Model: name, Env: s.Env, Table: llm.Models(), Window: f.window, Thoughts: f.thoughts, Cache: f.cache,
		Patience: llm.Patience{Timeout: f.timeout},
	}
	if f.timeout <= 0 {
		return c, fail(ExitUsage, fmt.Errorf("--model-timeout %v: a model needs some time", f.timeout), "")
	}
	if f.thoughts != "" && f.thoughts != llm.Back && f.thoughts != llm.Forget {
		return c, fail(ExitUsage, fmt.Errorf("--model-thoughts %s: it is %s or %s", f.thoughts, llm.Back, llm.Forget),
			"")
	}
	if f.prices != "" {
		var err error
		if c.Table, err = c.Table.With(f.prices); err != nil {
			return c, fail(ExitUsage, fmt.Errorf("--prices: %w", err), "")
		}
	}
	return c, nil
}
