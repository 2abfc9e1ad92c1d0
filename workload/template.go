package workload

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Request is what is sent.
type Request struct {
	Operation string
	Method    string
	Path      string // with the query
	Headers   Fields
	Body      string
}

// compiled is an operation whose templates have been parsed. It may be used concurrently.
type compiled struct {
	*Operation
	index int
	steps []*compiledStep // the first request, and those of Then
	pool  sync.Pool       // of *renderer
}

// renderer is one instance of an operation's templates, with the random numbers it draws from.
type renderer struct {
	dice  *dice
	vars  []*template.Template
	steps []stepTemplates
	out   strings.Builder
	err   error // the first of a template, since it was last looked at
}

// stepTemplates are the templates of a step.
type stepTemplates struct {
	query, headers, form []*template.Template
	path, body, expect   *template.Template
}

// compile parses an operation. Kept are the variables it may recall.
func (o *Operation) compile(kept map[string]any) (*compiled, error) {
	c := &compiled{Operation: o}
	known := []string{"n", "user"}
	for _, f := range o.Vars {
		known = append(known, f.Name)
	}
	for i, s := range o.all() {
		step, err := s.compile(known)
		if err != nil {
			return nil, inStep(i, err)
		}
		for _, f := range s.Capture {
			known = append(known, f.Name)
		}
		c.steps = append(c.steps, step)
	}
	first, err := o.renderer()
	if err != nil {
		return nil, err
	}
	// A template can also fail when it is run, such as for a name that is not among vars.
	if err := c.rehearse(first, nil); err != nil {
		return nil, err
	}
	if err := c.rehearse(first, kept); err != nil {
		return nil, err
	}
	c.pool.Put(first)
	return c, nil
}

// all are the steps of an operation.
func (o *Operation) all() []*Call {
	list := []*Call{&o.Call}
	for i := range o.Then {
		list = append(list, &o.Then[i].Call)
	}
	return list
}

// inStep says which step an error is about, unless it is the first.
func inStep(i int, err error) error {
	if i == 0 || err == nil {
		return err
	}
	return fmt.Errorf("then %d: %w", i, err)
}

// rehearse runs all templates once. What would be captured is 0.
func (c *compiled) rehearse(r *renderer, kept map[string]any) error {
	v := &visit{op: c}
	if err := v.begin(r, 0, kept); err != nil {
		return err
	}
	for i, s := range c.steps {
		if _, err := v.render(r, i); err != nil {
			return inStep(i, err)
		}
		if _, err := v.pattern(r, i); err != nil {
			return inStep(i, err)
		}
		for _, f := range s.Capture {
			v.vars[f.Name] = "0"
		}
	}
	return nil
}

func (o *Operation) renderer() (*renderer, error) {
	r := &renderer{dice: &dice{hidden: rand.NewChaCha8([32]byte{})}}
	r.dice.Rand = rand.New(&r.dice.pcg)
	functions := r.dice.functions()
	var fail error
	parse := func(what, text string) *template.Template {
		t, err := template.New(what).Option("missingkey=error").Funcs(functions).Parse(text)
		if err != nil && fail == nil {
			fail = tidy(err, functions)
		}
		return t
	}
	all := func(what string, fields Fields) (list []*template.Template) {
		for _, f := range fields {
			list = append(list, parse(what+" "+f.Name, f.Value))
		}
		return list
	}
	r.vars = all("vars", o.Vars)
	for i, s := range o.all() {
		r.steps = append(r.steps, stepTemplates{
			query: all("query", s.Query), headers: all("headers", s.Headers), form: all("form", s.Form),
			path: parse("path", s.Path), body: parse("body", s.Body), expect: parse("expect: body", s.Expect.Body),
		})
		if fail != nil {
			return nil, inStep(i, fail)
		}
	}
	return r, nil
}

// tidy makes an error of package template say what to do.
func tidy(err error, functions template.FuncMap) error {
	text := strings.TrimPrefix(err.Error(), "template: ")
	if strings.Contains(text, "function ") {
		text += "; known are " + strings.Join(slices.Sorted(maps.Keys(functions)), ", ")
	}
	return fmt.Errorf("%s", text)
}

// Streams of random numbers of one seed, so that arrivals, requests and users do not influence each
// other.
const (
	arrivalStream = 1 << 62
	choiceStream  = 1 << 61
	thinkStream   = 1 << 60
	heldStream    = 1 << 52 // the numbers of requests before a load begins
	heldSeed      = 1 << 63
	noiseStream   = 1 << 59 // and the numbers of intervals above it
	surgeStream   = 1 << 58 // and the numbers of surges above it
	stepShift     = 53      // the steps of an operation draw from the streams above this, by number
	userShift     = 32      // a user's requests are numbered from user << userShift
)

// chance is what the values of a load's requests are drawn from.
type chance struct {
	seed uint64 // of what can be had again
	// secret is of what nobody can foresee: who knows this program and the seed could answer what users
	// look for without having kept what they wrote.
	secret [32]byte
}

// newChance returns the chance of a load, with a secret of its own.
func newChance(seed uint64) chance {
	c := chance{seed: seed}
	crand.Read(c.secret[:]) //nolint:errcheck // It never fails.
	return c
}

// dice draws the values of one request.
type dice struct {
	*rand.Rand
	pcg    rand.PCG
	hidden *rand.ChaCha8 // of texts
}

// throw makes the dice fall as they do for the n-th request of a load, whatever was drawn before.
func (d *dice) throw(c chance, n uint64) {
	d.pcg.Seed(c.seed, mix64(n))
	d.hidden.Seed(sha256.Sum256(binary.BigEndian.AppendUint64(c.secret[:], n)))
}

// mix64 is the finalizer of SplitMix64: numbers next to each other become unrelated ones.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// run executes a template. It does nothing once one has failed.
func (r *renderer) run(t *template.Template, vars map[string]any) string {
	if r.err != nil {
		return ""
	}
	r.out.Reset()
	if err := t.Execute(&r.out, vars); err != nil {
		r.err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
	}
	return r.out.String()
}

// failed returns the first error since it was last called.
func (r *renderer) failed() error {
	err := r.err
	r.err = nil
	return err
}

// request renders the request of a step.
func (r *renderer) request(o *Operation, step int, vars map[string]any) (*Request, error) {
	s, t := o.all()[step], r.steps[step]
	pairs := func(fields Fields, templates []*template.Template) string {
		var list []string
		for i, f := range fields {
			list = append(list, url.QueryEscape(f.Name)+"="+url.QueryEscape(r.run(templates[i], vars)))
		}
		return strings.Join(list, "&")
	}
	q := &Request{Operation: o.Name, Method: strings.ToUpper(s.Method), Path: r.run(t.path, vars)}
	if len(s.Query) > 0 {
		separator := "?"
		if strings.Contains(q.Path, "?") {
			separator = "&"
		}
		q.Path += separator + pairs(s.Query, t.query)
	}
	for i, f := range s.Headers {
		q.Headers = append(q.Headers, Field{f.Name, r.run(t.headers[i], vars)})
	}
	if len(s.Form) > 0 {
		q.Body = pairs(s.Form, t.form)
		q.Headers = append(q.Headers, Field{"Content-Type", "application/x-www-form-urlencoded"})
	} else {
		q.Body = r.run(t.body, vars)
	}
	if q.Method == "" {
		q.Method = "GET"
		if q.Body != "" {
			q.Method = "POST"
		}
	}
	return q, r.failed()
}
