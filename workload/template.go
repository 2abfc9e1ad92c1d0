package workload

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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
	index  int
	expect *regexp.Regexp
	pool   sync.Pool // of *renderer
}

// renderer is one instance of an operation's templates, with the random numbers it draws from.
type renderer struct {
	dice                       *dice
	vars, query, headers, form []*template.Template
	path, body                 *template.Template
	out                        strings.Builder
}

func (o *Operation) compile() (*compiled, error) {
	c := &compiled{Operation: o}
	var err error
	if c.expect, err = o.Expect.compile(); err != nil {
		return nil, err
	}
	first, err := o.renderer()
	if err != nil {
		return nil, err
	}
	// A template can also fail when it is run, such as for a name that is not among vars.
	if _, err := first.request(o, 1, 0, 0); err != nil {
		return nil, err
	}
	c.pool.Put(first)
	return c, nil
}

func (o *Operation) renderer() (*renderer, error) {
	r := &renderer{dice: &dice{}}
	r.dice.Rand = rand.New(&r.dice.pcg)
	functions := r.dice.functions()
	parse := func(what, text string) (*template.Template, error) {
		t, err := template.New(what).Option("missingkey=error").Funcs(functions).Parse(text)
		if err != nil {
			return nil, tidy(err, functions)
		}
		return t, nil
	}
	all := func(what string, fields Fields, into *[]*template.Template) error {
		for _, f := range fields {
			t, err := parse(what+" "+f.Name, f.Value)
			if err != nil {
				return err
			}
			*into = append(*into, t)
		}
		return nil
	}
	err := all("vars", o.Vars, &r.vars)
	if err == nil {
		err = all("query", o.Query, &r.query)
	}
	if err == nil {
		err = all("headers", o.Headers, &r.headers)
	}
	if err == nil {
		err = all("form", o.Form, &r.form)
	}
	if err == nil {
		r.path, err = parse("path", o.Path)
	}
	if err == nil {
		r.body, err = parse("body", o.Body)
	}
	return r, err
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
	userShift     = 32 // a user's requests are numbered from user << userShift
)

// dice draws the values of one request.
type dice struct {
	*rand.Rand
	pcg rand.PCG
}

// seed makes the dice fall as they do for the n-th request of a seed, whatever was drawn before.
func (d *dice) seed(seed, n uint64) { d.pcg.Seed(seed, mix64(n)) }

// mix64 is the finalizer of SplitMix64: numbers next to each other become unrelated ones.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// request renders the n-th request of a seed. The user is the number of the session, if it is one
// of a session's.
func (c *compiled) request(seed, n, user uint64) (*Request, error) {
	r, _ := c.pool.Get().(*renderer)
	if r == nil {
		var err error
		if r, err = c.renderer(); err != nil {
			return nil, err
		}
	}
	defer c.pool.Put(r)
	return r.request(c.Operation, seed, n, user)
}

func (r *renderer) request(o *Operation, seed, n, user uint64) (*Request, error) {
	r.dice.seed(seed, n)
	vars := make(map[string]any, len(o.Vars)+2)
	vars["n"], vars["user"] = n, user
	var fail error
	run := func(t *template.Template) string {
		if fail != nil {
			return ""
		}
		r.out.Reset()
		if err := t.Execute(&r.out, vars); err != nil {
			fail = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
		}
		return r.out.String()
	}
	pairs := func(fields Fields, templates []*template.Template) string {
		var list []string
		for i, f := range fields {
			list = append(list, url.QueryEscape(f.Name)+"="+url.QueryEscape(run(templates[i])))
		}
		return strings.Join(list, "&")
	}
	for i, f := range o.Vars {
		vars[f.Name] = run(r.vars[i])
	}
	q := &Request{Operation: o.Name, Method: strings.ToUpper(o.Method), Path: run(r.path)}
	if len(o.Query) > 0 {
		separator := "?"
		if strings.Contains(q.Path, "?") {
			separator = "&"
		}
		q.Path += separator + pairs(o.Query, r.query)
	}
	for i, f := range o.Headers {
		q.Headers = append(q.Headers, Field{f.Name, run(r.headers[i])})
	}
	if len(o.Form) > 0 {
		q.Body = pairs(o.Form, r.form)
		q.Headers = append(q.Headers, Field{"Content-Type", "application/x-www-form-urlencoded"})
	} else {
		q.Body = run(r.body)
	}
	if q.Method == "" {
		q.Method = "GET"
		if q.Body != "" {
			q.Method = "POST"
		}
	}
	return q, fail
}

const (
	digits       = "0123456789"
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	maxText      = 1 << 20 // characters that a template may ask for
)

// functions are what templates call. Numbers may be given as texts too, since variables are texts.
func (d *dice) functions() template.FuncMap {
	return template.FuncMap{
		// int LOW HIGH is a whole number, both bounds included.
		"int": func(low, high any) (int, error) {
			l, h, err := bounds(low, high)
			if err != nil {
				return 0, err
			}
			return l + d.IntN(h-l+1), nil
		},
		// other LOW HIGH NOT is such a number, but not that one.
		"other": func(low, high, not any) (int, error) {
			l, h, err := bounds(low, high)
			if err != nil {
				return 0, err
			}
			x, err := toInt(not)
			if err != nil {
				return 0, err
			}
			if x < l || x > h {
				return l + d.IntN(h-l+1), nil
			}
			if l == h {
				return 0, fmt.Errorf("there is no other number than %d", l)
			}
			n := l + d.IntN(h-l)
			if n >= x {
				n++
			}
			return n, nil
		},
		// float LOW HIGH is a number between the two.
		"float": func(low, high float64) float64 { return low + (high-low)*d.Float64() },
		// choice A B ... is one of them.
		"choice": func(list ...string) (string, error) {
			if len(list) == 0 {
				return "", fmt.Errorf("choice of nothing")
			}
			return list[d.IntN(len(list))], nil
		},
		// text N is letters and digits, number N is digits.
		"text":   func(n any) (string, error) { return d.draw(alphanumeric, n) },
		"number": func(n any) (string, error) { return d.draw(digits, n) },
		// times N is a list to range over.
		"times": func(n any) ([]int, error) {
			count, err := length(n)
			return make([]int, count), err
		},
		// repeat N TEXT is the text so many times.
		"repeat": func(n, text any) (string, error) {
			count, err := length(n)
			return strings.Repeat(fmt.Sprint(text), count), err
		},
		// add A B is their sum.
		"add": func(a, b any) (int, error) {
			x, err := toInt(a)
			if err != nil {
				return 0, err
			}
			y, err := toInt(b)
			return x + y, err
		},
		// pad N WIDTH is a number with zeros in front.
		"pad": func(n any, width int) (string, error) {
			x, err := toInt(n)
			return fmt.Sprintf("%0*d", width, x), err
		},
	}
}

func (d *dice) draw(from string, n any) (string, error) {
	count, err := length(n)
	if err != nil {
		return "", err
	}
	b := make([]byte, count)
	for i := range b {
		b[i] = from[d.IntN(len(from))]
	}
	return string(b), nil
}

func bounds(low, high any) (l, h int, err error) {
	if l, err = toInt(low); err != nil {
		return 0, 0, err
	}
	if h, err = toInt(high); err != nil {
		return 0, 0, err
	}
	if h < l || h-l < 0 || h-l+1 <= 0 {
		return 0, 0, fmt.Errorf("no whole number is between %d and %d", l, h)
	}
	return l, h, nil
}

func length(n any) (int, error) {
	count, err := toInt(n)
	if err == nil && (count < 0 || count > maxText) {
		return 0, fmt.Errorf("%d is not a count between 0 and %d", count, maxText)
	}
	return count, err
}

func toInt(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case uint64:
		return int(v), nil
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0, fmt.Errorf("%q is no whole number", v)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%v is no whole number", v)
}
