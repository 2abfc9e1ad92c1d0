package server

import (
	"encoding/json"
	"net/http"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/internal/term"
)

// maxResponse is how much of a response is read, in a session and here.
const maxResponse = 1 << 20

// Action is an action of a task.
type Action struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind" enum:"read,write,submit" doc:"what it does to the cloud"`
	Doc    string          `json:"doc" doc:"its documentation, for a prompt"`
	Schema json.RawMessage `json:"schema" doc:"JSON schema of the arguments"`
}

// Said is a response to read.
type Said struct {
	Response string `json:"response"`
}

// Parsed is the call in a response.
type Parsed struct {
	Name    string         `json:"name"`
	Args    []any          `json:"args" doc:"arguments by position"`
	Kwargs  map[string]any `json:"kwargs" doc:"arguments by name"`
	Context []string       `json:"context" doc:"the text around the block that the call is in"`
	Note    string         `json:"note,omitempty" doc:"what of the response would not be heeded"`
}

// listActions answers GET /actions/{task}.
func (f *Front) listActions(w http.ResponseWriter, r *http.Request) error {
	task := r.PathValue("task")
	if err := known("task", task, term.Tasks); err != nil {
		return err
	}
	actions := aci.Actions(task)
	docs := aci.Docs(actions)
	list := []Action{}
	for _, a := range actions {
		list = append(list, Action{a.Name, string(a.Kind), docs[a.Name], a.Schema()})
	}
	return writeJSON(w, http.StatusOK, list)
}

// parse answers POST /parse.
func (f *Front) parse(w http.ResponseWriter, r *http.Request) error {
	var s Said
	if err := decode(w, r, &s); err != nil {
		return err
	}
	c, err := aci.Parse(s.Response[:min(len(s.Response), maxResponse)])
	if err != nil {
		return fail(http.StatusUnprocessableEntity, "%v", err)
	}
	return writeJSON(w, http.StatusOK, Parsed{
		c.Name, append([]any{}, c.Args...), c.Kwargs,
		append([]string{}, c.Context...), c.Note,
	})
}
