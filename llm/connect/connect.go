// Package connect opens chat models by name. Keys come from the environment or from files it names,
// and go nowhere but to the endpoint.
//
//	m, err := connect.Open(connect.Config{Model: "anthropic/claude-sonnet-4-5", Env: os.Getenv})
//
// A name is PROVIDER/MODEL, with openai, azure or anthropic for the provider. Any other name is that
// of a model at OPENAI_BASE_URL.
package connect

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/anthropic"
	"github.com/aiopslab/aiopslab/llm/openai"
)

// Config says which model, and how to ask it.
type Config struct {
	Model    string
	Env      func(string) string
	Table    llm.Table // prices and windows; nil for the built-in one
	Window   int       // instead of the table's, if not 0
	Thoughts string    // instead of the table's, if not empty: llm.Back or llm.Forget
	Patience llm.Patience
	Cache    string // directory of replies; empty for none
}

// Open makes a model. It does not connect yet.
func Open(c Config) (llm.Model, error) {
	provider, name, ok := strings.Cut(c.Model, "/")
	if p := providers[provider]; !ok || p == nil {
		provider, name = "openai", c.Model
	}
	if strings.TrimSpace(name) == "" {
		return nil, errors.New("no model is named; write for instance openai/gpt-4o or anthropic/claude-sonnet-4-5")
	}
	table := c.Table
	if table == nil {
		table = llm.Models()
	}
	info := table.Find(name)
	if c.Window > 0 {
		info.Window = c.Window
	}
	if c.Thoughts != "" {
		info.Thoughts = c.Thoughts
	}
	if info.Window == 0 {
		info.Window = llm.DefaultWindow
	}
	m, err := providers[provider](name, info, c.Env)
	if err != nil {
		return nil, err
	}
	m = llm.Retry(m, c.Patience)
	if c.Cache != "" {
		if m, err = llm.Cache(m, c.Cache); err != nil {
			return nil, err
		}
	}
	return llm.Read(m), nil
}

// providers make a model of theirs.
var providers = map[string]func(name string, info llm.Info, env func(string) string) (llm.Model, error){
	"openai": func(name string, info llm.Info, env func(string) string) (llm.Model, error) {
		key, err := readKey(env, "OPENAI_API_KEY")
		if err != nil {
			return nil, err
		}
		url := env("OPENAI_BASE_URL")
		if key == "" && url == "" {
			return nil, errors.New("there is no key: set OPENAI_API_KEY or OPENAI_API_KEY_FILE, or OPENAI_BASE_URL " +
				"for an endpoint that needs none")
		}
		return openai.New(openai.Config{Model: name, Info: info, BaseURL: url, Key: key, Client: client()}), nil
	},
	"azure": func(name string, info llm.Info, env func(string) string) (llm.Model, error) {
		key, err := readKey(env, "AZURE_OPENAI_API_KEY")
		if err != nil {
			return nil, err
		}
		endpoint := strings.TrimRight(env("AZURE_OPENAI_ENDPOINT"), "/")
		if key == "" || endpoint == "" {
			return nil, errors.New("set AZURE_OPENAI_ENDPOINT, as https://NAME.openai.azure.com, and " +
				"AZURE_OPENAI_API_KEY or AZURE_OPENAI_API_KEY_FILE")
		}
		if !strings.HasSuffix(endpoint, "/v1") {
			endpoint += "/openai/v1"
		}
		return openai.New(openai.Config{
			Model: name, Info: info, BaseURL: endpoint, Key: key, KeyHeader: "api-key",
			Client: client(),
		}), nil
	},
	"anthropic": func(name string, info llm.Info, env func(string) string) (llm.Model, error) {
		key, err := readKey(env, "ANTHROPIC_API_KEY")
		if err != nil {
			return nil, err
		}
		url := env("ANTHROPIC_BASE_URL")
		if key == "" && url == "" {
			return nil, errors.New("there is no key: set ANTHROPIC_API_KEY or ANTHROPIC_API_KEY_FILE, or " +
				"ANTHROPIC_BASE_URL for an endpoint that needs none")
		}
		return anthropic.New(anthropic.Config{Model: name, Info: info, BaseURL: url, Key: key, Client: client()}), nil
	},
}

// client is one of our own: what others do to the default one is no concern of ours, and a key is
// not taken along to wherever an endpoint redirects.
func client() *http.Client {
	return &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readKey returns the key in a variable, or in the file that NAME_FILE names.
func readKey(env func(string) string, name string) (string, error) {
	if key := strings.TrimSpace(env(name)); key != "" {
		return key, nil
	}
	file := env(name + "_FILE")
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", fmt.Errorf("%s_FILE: %s has no key in it, or more than one", name, file)
	}
	return key, nil
}
