package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// Expect is what a successful answer looks like. An answer that differs is a failure; its class is [Body] if the
// body is what differs.
type Expect struct {
	// Status are the codes of success. Default: any of 2xx and 3xx.
	Status []int `yaml:"status,omitempty"`
	// Body is a regular expression that the body must match; a template.
	Body string `yaml:"body,omitempty"`
	// JSON are conditions on the body as JSON: jq programs, each of which must yield true. They see the variables
	// by name, as texts: $id.
	JSON []string `yaml:"json,omitempty"`
}

// compiledStep is a step whose expectations have been parsed.
type compiledStep struct {
	*Call
	names      []string       // of variables, as the programs get them
	pattern    *regexp.Regexp // nil if there is none, or it is another for each request
	conditions []*gojq.Code
	captures   []*gojq.Code
}

// compile parses the expectations of a step that knows variables.
func (s *Call) compile(known []string) (*compiledStep, error) {
	c := &compiledStep{Call: s, names: slices.Compact(slices.Sorted(slices.Values(known)))}
	for _, code := range s.Expect.Status {
		if code < 100 || code > 599 {
			return nil, fmt.Errorf("expect: %d is no HTTP status", code)
		}
	}
	if s.Expect.Body != "" && !strings.Contains(s.Expect.Body, "{{") {
		var err error
		if c.pattern, err = regexp.Compile(s.Expect.Body); err != nil {
			return nil, fmt.Errorf("expect: body: %w", err)
		}
	}
	for _, text := range s.Expect.JSON {
		code, err := c.program(text)
		if err != nil {
			return nil, fmt.Errorf("expect: json: %w", err)
		}
		c.conditions = append(c.conditions, code)
	}
	for _, f := range s.Capture {
		code, err := c.program(f.Value)
		if err != nil {
			return nil, fmt.Errorf("capture: %s: %w", f.Name, err)
		}
		c.captures = append(c.captures, code)
	}
	return c, nil
}

func (c *compiledStep) program(text string) (*gojq.Code, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no jq program: %w", text, err)
	}
	variables := make([]string, len(c.names))
	for i, n := range c.names {
		variables[i] = "$" + n
	}
	code, err := gojq.Compile(query, gojq.WithVariables(variables))
	if err != nil {
		return nil, fmt.Errorf("%q: %w; known are %s", text, err, strings.Join(variables, ", "))
	}
	return code, nil
}

// judge tells whether the answer of a step is what is expected. It is a failure with a text unless
// the class is empty.
func (v *visit) judge(ctx context.Context, step, status int, body []byte) (Class, string) {
	s := v.op.steps[step]
	if class := s.Expect.judge(status); class != "" {
		return class, fmt.Sprintf("%d %s: %s", status, http.StatusText(status), excerpt(body))
	}
	if s.Expect.Body != "" {
		r, err := v.op.borrow()
		if err != nil {
			return Other, err.Error()
		}
		defer v.op.pool.Put(r)
		re, err := v.pattern(r, step)
		if err != nil {
			return Other, err.Error()
		}
		if !re.Match(body) {
			return Body, fmt.Sprintf("the body does not match %q: %s", re, excerpt(body))
		}
	}
	return v.examine(ctx, s, body)
}

// judge tells whether a status is one of success.
func (e *Expect) judge(status int) Class {
	expected := status >= 200 && status < 400
	if len(e.Status) > 0 {
		expected = slices.Contains(e.Status, status)
	}
	switch {
	case expected:
		return ""
	case status >= 500:
		return HTTP5xx
	case status >= 400:
		return HTTP4xx
	}
	return Status
}

// examine looks at a body as JSON, and takes from it what later steps use.
func (v *visit) examine(ctx context.Context, s *compiledStep, body []byte) (Class, string) {
	if len(s.conditions)+len(s.captures) == 0 {
		return "", ""
	}
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		return Body, "the body is no JSON: " + excerpt(body)
	}
	values := make([]any, len(s.names))
	for i, n := range s.names {
		values[i] = fmt.Sprint(v.vars[n])
	}
	for i, code := range s.conditions {
		if x, _ := code.RunWithContext(ctx, doc, values...).Next(); x != true {
			return Body, fmt.Sprintf("the body is not such that %s: %s", s.Expect.JSON[i], excerpt(body))
		}
	}
	for i, code := range s.captures {
		x, ok := code.RunWithContext(ctx, doc, values...).Next()
		text, isText := x.(string)
		_, failed := x.(error)
		if !ok || x == nil || failed {
			return Body, fmt.Sprintf("the body has no %s: %s", s.Capture[i].Name, excerpt(body))
		}
		if !isText {
			b, _ := gojq.Marshal(x)
			text = string(b)
		}
		v.vars[s.Capture[i].Name] = text
	}
	return "", ""
}
