// Package policy says what an agent may change: which verbs on which kinds in which namespaces, and which commands in
// containers. A policy is a YAML document; the first rule that fits a change decides.
//
//	name: night-shift
//	dry_run: true          # every change is tried with the API server first
//	otherwise: deny        # what no rule is about
//	rules:
//	- verbs: [patch, update]
//	  kinds: [deployments, deployments/scale]
//	  namespaces: [application]
//	  do: allow
//	- risk: [irreversible]
//	  do: ask
//	  because: somebody has to answer for it
//
// Reading the API is not a change. A decision is a pure function of the policy and the [Change].
package policy

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Do is what becomes of a change.
type Do string

const (
	Allow Do = "allow"
	Deny  Do = "deny"
	// Ask has somebody approve of it first.
	Ask Do = "ask"
)

// Approval is what becomes of a change that a rule has somebody approve of.
type Approval string

const (
	ApproveAuto Approval = "auto" // it is approved
	ApproveAsk  Approval = "ask"  // who approves is asked
	ApproveDeny Approval = "deny" // it is refused
)

// Application stands for the application's namespace in a rule.
const Application = "application"

// Policy is what an agent may change.
type Policy struct {
	Name string `yaml:"name"`
	Doc  string `yaml:"doc"` // one line
	// Approval is for rules that ask; ask if it is empty.
	Approval Approval `yaml:"approval"`
	// DryRun has changes tried with a server-side dry run first, where the API server has one.
	DryRun bool `yaml:"dry_run"`
	// Otherwise is for what no rule is about; deny if it is empty.
	Otherwise Do     `yaml:"otherwise"`
	Rules     []Rule `yaml:"rules"`
	// Irreversible is for what cannot be taken back and comes in a transaction, if it is allowed otherwise; deny if it
	// is empty.
	Irreversible Do `yaml:"irreversible_in_transactions"`
	// Severity says what counts how much when a system is said to be worse; nil for the usual weights.
	Severity *Severity `yaml:"severity"`

	// Source is the document.
	Source []byte `yaml:"-"`
}

// Severity is what each part of a system's severity counts. Only their proportion matters.
type Severity struct {
	Users     float64 `yaml:"users"`
	Workloads float64 `yaml:"workloads"`
	Alerts    float64 `yaml:"alerts"`
}

// Rule decides about changes that fit all of its lists. An empty list fits all; * in an entry stands for anything.
type Rule struct {
	Verbs      []string `yaml:"verbs"`      // create, update, patch, delete, deletecollection, connect
	Kinds      []string `yaml:"kinds"`      // resources, with a subresource if there is one: pods/exec
	Namespaces []string `yaml:"namespaces"` // Application is the application's; "" is what is in no namespace
	Names      []string `yaml:"names"`
	Commands   []string `yaml:"commands"` // in containers, with their arguments
	Risk       []Risk   `yaml:"risk"`
	Do         Do       `yaml:"do"`
	Because    string   `yaml:"because"` // told to the agent
}

// Change is what an agent wants to do.
type Change struct {
	Verb        string   `json:"verb"`
	Group       string   `json:"group,omitempty"`
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource,omitempty"`
	Namespace   string   `json:"namespace,omitempty"`
	Name        string   `json:"name,omitempty"`
	Command     []string `json:"command,omitempty"`
	DryRun      bool     `json:"dry_run,omitempty"` // nothing is changed
}

// Kind is the resource, with the subresource if there is one.
func (c Change) Kind() string {
	if c.Subresource == "" {
		return c.Resource
	}
	return c.Resource + "/" + c.Subresource
}

// String says in a few words what it is.
func (c Change) String() string {
	text := c.Verb + " " + c.Kind()
	if c.Name != "" {
		text += " " + c.Name
	}
	if c.Namespace != "" {
		text += " in " + c.Namespace
	}
	if len(c.Command) > 0 {
		text += ": " + strings.Join(c.Command, " ")
	}
	return text
}

// Decision is what a policy says about a change.
type Decision struct {
	Do      Do     `json:"do"`
	Risk    Risk   `json:"risk"`
	Because string `json:"because"` // why the risk is that, and why it is decided so
	DryRun  bool   `json:"dry_run,omitempty"`
}

// Decide says what becomes of a change. Home is the application's namespace.
func (p *Policy) Decide(c Change, home string) Decision {
	risk, why := Classify(c)
	d := Decision{Do: p.otherwise(), Risk: risk, Because: why, DryRun: p.DryRun}
	if c.DryRun {
		d.Do = Allow
		return d
	}
	for _, r := range p.Rules {
		if !r.fits(c, risk, home) {
			continue
		}
		d.Do = r.Do
		if r.Because != "" {
			d.Because += "; " + r.Because
		}
		break
	}
	if d.Do == Ask {
		switch p.Approval {
		case ApproveAuto:
			d.Do = Allow
		case ApproveDeny:
			d.Do = Deny
		}
	}
	return d
}

// InTransactions reports whether what cannot be taken back may be done in a transaction. Without a policy it may not.
func (p *Policy) InTransactions() bool { return p != nil && p.Irreversible == Allow }

func (p *Policy) otherwise() Do {
	if p.Otherwise == "" {
		return Deny
	}
	return p.Otherwise
}

func (r Rule) fits(c Change, risk Risk, home string) bool {
	namespaces := slices.Clone(r.Namespaces)
	for i, n := range namespaces {
		if n == Application {
			namespaces[i] = home
		}
	}
	if len(r.Commands) > 0 && len(c.Command) == 0 {
		return false
	}
	return oneOf(r.Verbs, c.Verb) && oneOf(r.Kinds, c.Kind()) && oneOf(namespaces, c.Namespace) &&
		oneOf(r.Names, c.Name) && oneOf(r.Commands, strings.Join(c.Command, " ")) &&
		(len(r.Risk) == 0 || slices.Contains(r.Risk, risk))
}

// oneOf reports whether a text fits one of a list of patterns, or the list is empty.
func oneOf(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return match(p, text) })
}

// match reports whether a text fits a pattern, in which * stands for anything.
func match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return len(text) >= len(last) && strings.HasSuffix(text, last)
}

//go:embed builtin/*.yaml
var files embed.FS

// Names are those of the policies that are built in.
func Names() []string { return []string{"observe", "careful", "sre", "anything"} }

// Find returns a policy that is built in, or else the one of a file.
func Find(name string) (*Policy, error) {
	if slices.Contains(Names(), name) {
		b, err := fs.ReadFile(files, "builtin/"+name+".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(name+".yaml", b)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no file and none of the policies %s", name, strings.Join(Names(), ", "))
	}
	return Parse(name, b)
}

// Parse reads a document. The error has every mistake in it, with its line.
func Parse(file string, data []byte) (*Policy, error) {
	p := &Policy{Source: data}
	places, err := strict.DecodePlaces(file, data, p)
	if err != nil {
		return nil, err
	}
	bad := &strict.Problems{File: file}
	word := func(line int, what, text string, known ...string) {
		if !slices.Contains(known, text) {
			bad.Add(line, "%s", strict.Unknown(what, text, known))
		}
	}
	if strings.TrimSpace(p.Name) == "" {
		bad.Add(0, "there is no name")
	}
	if p.Approval != "" {
		word(places.Line("approval"), "approval", string(p.Approval), "auto", "ask", "deny")
	}
	if p.Otherwise != "" {
		word(places.Line("otherwise"), "otherwise", string(p.Otherwise), "allow", "ask", "deny")
	}
	if p.Irreversible != "" {
		const field = "irreversible_in_transactions"
		word(places.Line(field), field, string(p.Irreversible), "allow", "deny")
	}
	if w := p.Severity; w != nil && (min(w.Users, w.Workloads, w.Alerts) < 0 || w.Users+w.Workloads <= 0) {
		bad.Add(places.Line("severity"), "severity needs weights of 0 or more, and one for users or workloads above 0")
	}
	for i, r := range p.Rules {
		word(places.Line("rules", i, "do"), "do", string(r.Do), "allow", "ask", "deny")
		for j, v := range r.Verbs {
			if v != "*" {
				word(places.Line("rules", i, "verbs", j), "verb", v, "create", "update", "patch", "delete",
					"deletecollection", "connect")
			}
		}
		for j, k := range r.Risk {
			word(places.Line("rules", i, "risk", j), "risk", string(k), riskNames()...)
		}
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return p, nil
}
