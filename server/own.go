package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

// maxDocument is how long the document of a problem may be.
const maxDocument = 256 << 10

// parseOwn reads a document whose problems are not to be taken for those of the library. The name is for
// errors.
func parseOwn(l *problem.Library, name, text string) ([]*problem.Problem, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%s: it is longer than %d bytes", name, maxDocument)
	}
	list, err := l.Parse(name, []byte(text))
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if _, err := l.Find(p.ID); err == nil {
			return nil, fmt.Errorf("%s: there is a problem %s already; choose another id", name, p.ID)
		}
	}
	return list, nil
}

// Find returns the problem of a run: one of the library, or of the document that comes with it.
func (s NewSession) Find(l *problem.Library) (*problem.Problem, error) {
	if s.Document == "" {
		return l.Find(s.Problem)
	}
	list, err := parseOwn(l, "document", s.Document)
	if err != nil {
		return nil, err
	}
	return choose(list, s.Problem)
}

// choose returns the problem of a document that an id or a task names.
func choose(list []*problem.Problem, name string) (*problem.Problem, error) {
	if name == "" && len(list) == 1 {
		return list[0], nil
	}
	var ids []string
	for _, p := range list {
		if name != "" && (p.ID == name || string(p.Task) == name) {
			return p, nil
		}
		ids = append(ids, p.ID)
	}
	return nil, fmt.Errorf("the document has %s; name one of them, or its task, as the problem",
		strings.Join(ids, ", "))
}

// settle finds the problem that a session asks for, or says why it cannot be had. Only what the
// operator put into the catalog or the caller sends along is ever read.
func (f *Front) settle(n *NewSession) error {
	if n.Document == "" {
		if n.Problem == "" {
			return fail(http.StatusUnprocessableEntity, "which problem? GET /problems has the ids")
		}
		if err := known("problem", n.Problem, f.problems); err != nil {
			return err
		}
	}
	p, err := n.Find(f.Library)
	if err != nil {
		return fail(http.StatusUnprocessableEntity, "%v", err)
	}
	n.Problem = p.ID
	if why := f.lacks(p); why != "" {
		return fail(http.StatusUnprocessableEntity, "%s", why)
	}
	return nil
}

// settleEnv does so for an environment: the problems that it names, and those that its selector chooses, of its
// documents or of the library.
func (f *Front) settleEnv(n *NewEnv) (documents map[string]string, err error) {
	if n.Problem != "" {
		n.Problems = append(n.Problems, n.Problem)
		n.Problem = ""
	}
	documents = map[string]string{}
	for _, id := range n.Problems {
		if err := f.settle(&NewSession{Problem: id}); err != nil {
			return nil, err
		}
	}
	var list []*problem.Problem
	switch selector := n.selector(); {
	case len(n.Documents) > 0:
		list, err = f.chooseOwn(n.Documents, selector, documents)
	case selector != (problem.Selector{}):
		list, err = f.Library.Select(selector)
	}
	if err != nil {
		return nil, fail(http.StatusUnprocessableEntity, "%v", err)
	}
	lacking := ""
	for _, p := range list {
		if why := f.lacks(p); why != "" {
			lacking = why
			continue
		}
		if !slices.Contains(n.Problems, p.ID) {
			n.Problems = append(n.Problems, p.ID)
		}
	}
	n.Documents, n.EnvSelector = nil, EnvSelector{}
	switch {
	case len(n.Problems) == 0 && lacking != "":
		return nil, fail(http.StatusUnprocessableEntity, "%s", lacking)
	case len(n.Problems) == 0:
		return nil, f.settle(&NewSession{})
	}
	return documents, nil
}

// chooseOwn returns those problems of documents that a selector chooses, and notes where each of them is.
func (f *Front) chooseOwn(texts []string, s problem.Selector, documents map[string]string) ([]*problem.Problem, error) {
	own := &problem.Library{Apps: f.Library.Apps}
	for _, text := range texts {
		list, err := parseOwn(f.Library, "document", text)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if documents[p.ID] != "" {
				return nil, fmt.Errorf("there are two problems %s in the documents", p.ID)
			}
			own.Problems = append(own.Problems, p)
			documents[p.ID] = text
		}
	}
	return own.Select(s)
}

func (s EnvSelector) selector() problem.Selector {
	return problem.Selector{Suite: s.Suite, Task: problem.Task(s.Task), App: s.App}
}

func (f *Front) lacks(p *problem.Problem) string {
	if f.Lacks == nil {
		return ""
	}
	return f.Lacks(p)
}
