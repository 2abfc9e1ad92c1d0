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
	if f.Lacks == nil {
		return nil
	}
	if why := f.Lacks(p); why != "" {
		return fail(http.StatusUnprocessableEntity, "%s", why)
	}
	return nil
}

// settleEnv does so for an environment: its problems, and those of its documents.
func (f *Front) settleEnv(n *NewEnv) (documents map[string]string, err error) {
	if n.Problem != "" {
		n.Problems = append(n.Problems, n.Problem)
		n.Problem = ""
	}
	documents = map[string]string{}
	for _, id := range n.Problems {
		s := NewSession{Problem: id}
		if err := f.settle(&s); err != nil {
			return nil, err
		}
		documents[id] = s.Document
	}
	for _, text := range n.Documents {
		list, err := parseOwn(f.Library, "document", text)
		if err != nil {
			return nil, fail(http.StatusUnprocessableEntity, "%v", err)
		}
		for _, p := range list {
			if !slices.Contains(n.Problems, p.ID) {
				n.Problems = append(n.Problems, p.ID)
			}
			documents[p.ID] = text
		}
	}
	n.Documents = nil
	if len(n.Problems) == 0 {
		return nil, f.settle(&NewSession{})
	}
	return documents, nil
}
