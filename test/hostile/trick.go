package hostile

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"text/template"

	"github.com/aiopslab/aiopslab/internal/strict"
)

//go:embed tricks/*.yaml
var files embed.FS

// Document is a class of tricks.
type Document struct {
	Class   string  `yaml:"class"`
	About   string  `yaml:"about"`
	Problem string  `yaml:"problem"` // that the agent works on, unless a trick names another
	Tricks  []Trick `yaml:"tricks"`
}

// Trick is one thing to try. Commands and responses are templates; {{repeat 1000 "("}} is a text so
// many times.
type Trick struct {
	Name    string `yaml:"name"`
	Problem string `yaml:"problem,omitempty"`
	// Shell are commands for exec_shell, one call each, and Seconds how long each may take.
	Shell   []string `yaml:"shell,omitempty"`
	Seconds int      `yaml:"seconds,omitempty"`
	// Send are responses that are sent as they are, after the commands.
	Send []string `yaml:"send,omitempty"`
	// Want is a pattern that the last observation must match, Never one that none may.
	Want  string `yaml:"want,omitempty"`
	Never string `yaml:"never,omitempty"`
	// Verdict is the class that the run must end with. Why is a pattern of the reason. Such a trick
	// has a run of its own.
	Verdict string `yaml:"verdict,omitempty"`
	Why     string `yaml:"why,omitempty"`
	// Part is for the tricks that 'make test' tries.
	Part bool `yaml:"part,omitempty"`

	class       string
	want, never *regexp.Regexp
	why         *regexp.Regexp
}

// Class is what the trick is a case of.
func (t *Trick) Class() string { return t.class }

// Tricks returns all tricks in the order of their documents.
func Tricks() ([]*Trick, error) {
	names, err := fs.Glob(files, "tricks/*.yaml")
	if err != nil {
		return nil, err
	}
	var list []*Trick
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		more, err := read(name, data)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func read(name string, data []byte) ([]*Trick, error) {
	var d Document
	if err := strict.Decode(name, data, &d); err != nil {
		return nil, err
	}
	var list []*Trick
	for i := range d.Tricks {
		t := &d.Tricks[i]
		t.class = d.Class
		if t.Problem == "" {
			t.Problem = d.Problem
		}
		if err := t.compile(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, t.Name, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func (t *Trick) compile() (err error) {
	if t.Name == "" || t.Problem == "" || len(t.Shell)+len(t.Send) == 0 {
		return fmt.Errorf("a trick needs a name, a problem, and something to send")
	}
	for _, p := range []struct {
		text string
		into **regexp.Regexp
	}{{t.Want, &t.want}, {t.Never, &t.never}, {t.Why, &t.why}} {
		if p.text == "" {
			continue
		}
		if *p.into, err = regexp.Compile(p.text); err != nil {
			return err
		}
	}
	for _, list := range [][]string{t.Shell, t.Send} {
		for i, text := range list {
			if list[i], err = expand(text); err != nil {
				return err
			}
		}
	}
	return nil
}

// expand runs a text as a template.
func expand(text string) (string, error) {
	t, err := template.New("trick").Funcs(template.FuncMap{
		"repeat": func(n int, s string) string { return strings.Repeat(s, n) },
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}

// judge says why a trick was not held by what the agent saw, or nothing.
func (t *Trick) judge(observations []string) string {
	for _, o := range observations {
		if t.never != nil {
			if m := t.never.FindString(o); m != "" {
				return fmt.Sprintf("the agent saw %q", m)
			}
		}
	}
	if t.want != nil && (len(observations) == 0 || !t.want.MatchString(observations[len(observations)-1])) {
		last := "nothing"
		if len(observations) > 0 {
			last = fmt.Sprintf("%.300q", observations[len(observations)-1])
		}
		return fmt.Sprintf("no %q in what the agent saw last: %s", t.Want, last)
	}
	return ""
}
