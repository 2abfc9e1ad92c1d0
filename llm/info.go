package llm

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// DefaultWindow is how many tokens a model is assumed to read if nothing says otherwise.
const DefaultWindow = 32_768

// Info is what is known of a model: its prices, in dollars for a million tokens, and its window.
type Info struct {
	In      *float64 `yaml:"in"`
	Cached  *float64 `yaml:"cached"`  // what the provider had in its cache; In if not given
	Written *float64 `yaml:"written"` // what it put there; In if not given
	Out     *float64 `yaml:"out"`
	Window  int      `yaml:"window"` // tokens of request and reply together
	// Thoughts says whether the model wants its thoughts sent back: Back, Forget, or empty to find out.
	Thoughts string `yaml:"thoughts"`
}

// What is done with a model's thoughts in the next request.
const (
	Back   = "back"   // they are sent back
	Forget = "forget" // they are left out
)

// Priced reports whether the cost of an exchange can be told.
func (i Info) Priced() bool { return i.In != nil && i.Out != nil }

// Cost is what an exchange costs in dollars; unknown without prices.
func (i Info) Cost(u Usage) (dollars float64, known bool) {
	if !i.Priced() {
		return 0, false
	}
	price := func(p *float64) float64 {
		if p == nil {
			p = i.In
		}
		return *p
	}
	sum := float64(u.In-u.Cached-u.Written)**i.In + float64(u.Cached)*price(i.Cached) +
		float64(u.Written)*price(i.Written) + float64(u.Out)**i.Out
	return sum / 1e6, true
}

// Table is what is known of models, by name.
type Table map[string]Info

//go:embed models.yaml
var builtin []byte

// Models returns what is known of the models of the large providers.
func Models() Table {
	t, err := decodeTable("models.yaml", builtin)
	if err != nil {
		panic(err) // It is our own.
	}
	return t
}

// With returns the table with the entries of a file in place of its own.
func (t Table) With(file string) (Table, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	more, err := decodeTable(file, data)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(t)
	maps.Copy(all, more)
	return all, nil
}

func decodeTable(name string, data []byte) (Table, error) {
	t := Table{}
	if err := strict.Decode(name, data, &t); err != nil {
		return nil, err
	}
	for model, i := range t {
		if (i.In == nil) != (i.Out == nil) {
			return nil, fmt.Errorf("%s: %s: give the price of both in and out", name, model)
		}
		for _, p := range []*float64{i.In, i.Cached, i.Written, i.Out} {
			if p != nil && *p < 0 {
				return nil, fmt.Errorf("%s: %s: a price is negative", name, model)
			}
		}
		if i.Thoughts != "" && i.Thoughts != Back && i.Thoughts != Forget {
			return nil, fmt.Errorf("%s: %s: thoughts: %q is neither %q nor %q", name, model, i.Thoughts, Back, Forget)
		}
		if i.Window < 0 {
			return nil, fmt.Errorf("%s: %s: the window is negative", name, model)
		}
	}
	return t, nil
}

// dated is a name with a version behind it: gpt-4o-2024-08-06, claude-sonnet-4-5-20250929.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$`)

// Find returns what is known of a model. A dated version counts as the model itself, and so does one
// behind a provider's prefix, as gateways have it.
func (t Table) Find(model string) Info {
	for name := model; ; {
		for _, n := range []string{name, dated.ReplaceAllString(name, ""), strings.ReplaceAll(name, ".", "-")} {
			if i, ok := t[n]; ok {
				return i
			}
		}
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return Info{}
		}
		name = rest
	}
}
