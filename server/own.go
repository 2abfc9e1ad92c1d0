package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

const (
	// maxDocument is how long the document of a problem may be.
	maxDocument = 256 << 10
	// maxID is how long the id of a problem may be. It is in the names of files.
	maxID = 120
)

// OwnProblem is a problem that is not built in: its id, and the document that describes it.
type OwnProblem struct{ ID, Document string }

// ReadProblems reads the problems of a directory: all *.yaml and *.yml files in it.
func ReadProblems(dir string) ([]OwnProblem, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []OwnProblem
	var errs []error
	from := map[string]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		file := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		problems, err := parseOwn(file, string(data))
		errs = append(errs, err)
		for _, p := range problems {
			if other := from[p.ID]; other != "" {
				errs = append(errs, fmt.Errorf("%s: the problem %s is in %s too", file, p.ID, other))
			}
			from[p.ID] = file
			list = append(list, OwnProblem{p.ID, string(data)})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: there are no *.yaml files in it", dir)
	}
	return list, nil
}

// parseOwn reads a document whose problems are not to be taken for built-in ones. The name is for
// errors.
func parseOwn(name, text string) ([]*problem.Problem, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%s: it is longer than %d bytes", name, maxDocument)
	}
	list, err := problem.Parse(name, []byte(text))
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if len(p.ID) > maxID {
			return nil, fmt.Errorf("%s: the id %.20s... is longer than %d characters", name, p.ID, maxID)
		}
		if _, err := problem.Find(p.ID); err == nil {
			return nil, fmt.Errorf("%s: there is a built-in problem %s; choose another id", name, p.ID)
		}
	}
	return list, nil
}

// Find returns the problem of a run: a built-in one, or one of the document that comes with it.
func (s NewSession) Find() (*problem.Problem, error) {
	if s.Document == "" {
		return problem.Find(s.Problem)
	}
	list, err := parseOwn("document", s.Document)
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
	return nil, fmt.Errorf("the document has %s; name one of them, or its task, as the problem", strings.Join(ids, ", "))
}

// settle finds the problem that a session asks for, or says why it cannot be had. Only what the
// operator put into the catalog or the caller sends along is ever read.
func (f *Front) settle(n *NewSession) error {
	if n.Document != "" {
		p, err := n.Find()
		if err != nil {
			return fail(http.StatusUnprocessableEntity, "%v", err)
		}
		n.Problem = p.ID
		return nil
	}
	if n.Problem == "" {
		return fail(http.StatusUnprocessableEntity, "which problem? GET /problems has the ids")
	}
	n.Document = f.own[n.Problem]
	return known("problem", n.Problem, f.problems)
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
		list, err := parseOwn("document", text)
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
