package server

import (
	"fmt"
	"html"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/session"
)

// route is a path of the API and all that there is to say of it. The documents are made from it.
type route struct {
	method, path string
	summary      string
	request      any // example of the body; nil if there is none
	status       int
	response     any    // example of the body; nil if it is no JSON
	media        string // of a body that is no JSON
	handle       handler
}

// routes are the API.
func (f *Front) routes() []route {
	get, post, remove := http.MethodGet, http.MethodPost, http.MethodDelete
	ok := http.StatusOK
	return slices.Concat([]route{
		{
			get, "/health", "Say that the server is there; the only path that needs no token", nil, ok,
			Health{},
			"",
			f.health,
		},
		{get, "/problems", "List the ids of the problems", nil, ok, []string{}, "", limited(f.listProblems)},
		{get, "/agents", "List the agents that work by themselves", nil, ok, []string{}, "", limited(f.listAgents)},
		{
			post, "/simulate", "Take an agent through a problem, and answer when that is over, as " +
				"AIOpsLab's service does",
			Simulation{},
			ok,
			session.File{},
			"", limited(f.simulate),
		},

		{get, "/actions/{task}", "List the actions of a task", nil, ok, []Action{}, "", f.listActions},
		{post, "/parse", "Tell how a response is read: the call in it", Said{}, ok, Parsed{}, "", f.parse},

		{
			post, "/sessions", "Begin a session: the caller is the agent, or names one",
			NewSession{},
			http.StatusCreated,
			OpenedSession{},
			"", limited(f.openSession),
		},
		{get, "/sessions", "List the sessions", nil, ok, []Session{}, "", limited(f.listSessions)},
		{get, "/sessions/{id}", "Say where a session is", nil, ok, Session{}, "", f.getSession},
		{
			get, "/sessions/{id}/problem", "Wait until the agent has its turn, and tell what it is told", nil, ok,
			Problem{},
			"", f.part("problem"),
		},
		{post, "/sessions/{id}/act", "Take a step", Act{}, ok, Turn{}, "", f.part("act")},
		{
			get, "/sessions/{id}/observation",
			"Tell again what the last step came to, for a caller whose connection broke", nil, ok,
			Turn{},
			"",
			f.part("observation"),
		},
		{
			post, "/sessions/{id}/submit", "Hand the answer in, and wait for the outcome; where an incident " +
				"asks another question, the status is 202 and the body what a step comes to, with that question",
			Submission{},
			ok,
			Outcome{},
			"",
			f.part("submit"),
		},
		{
			post, "/sessions/{id}/give-up",
			"End the agent's turn without a submission, as its failure, and wait for the outcome",
			Surrender{},
			ok,
			Outcome{},
			"", f.part("give-up"),
		},
		{get, "/sessions/{id}/outcome", "Wait for the outcome", nil, ok, Outcome{}, "", f.part("outcome")},
		{get, "/sessions/{id}/events", "Stream the events of the record; what would tell the answer comes " +
			"after the verdict", nil, ok, nil, "text/event-stream", f.part("events")},
		{
			get, "/sessions/{id}/record", "Get the record, after the verdict", nil, ok, nil, "application/jsonl",
			f.part("record"),
		},
		{
			get, "/sessions/{id}/questions", "List the changes that the policy asks about and that wait for an answer",
			nil, ok,
			[]session.Approval{},
			"",
			limited(f.part("questions")),
		},
		{
			post, "/sessions/{id}/questions/{number}", "Approve of a change, or refuse it; the first answer counts",
			Verdict{},
			ok,
			Verdict{},
			"",
			limited(f.part("answer")),
		},
		{
			remove, "/sessions/{id}", "Cancel a session, and wait until what there is is graded", nil, ok,
			Session{},
			"",
			limited(f.cancelSession),
		},

		{
			post, "/envs", "Make an environment for training, or as many as n says",
			NewEnv{},
			http.StatusCreated,
			oneOf{OpenedEnv{}, OpenedEnvs{}},
			"",
			limited(f.openEnv),
		},
		{get, "/envs", "List the environments", nil, ok, []Env{}, "", limited(f.listEnvs)},
		{post, "/envs/{id}/reset", "Begin an episode", Reset{}, ok, First{}, "", f.resetEnv},
		{post, "/envs/{id}/step", "Take a step of the episode", Move{}, ok, Result{}, "", f.stepEnv},
		{
			post, "/envs/batch/reset", "Begin an episode in each of several environments",
			BatchReset{},
			ok,
			BatchFirst{},
			"",
			f.resetBatch,
		},
		{
			post, "/envs/batch/step", "Take a step in each of several environments",
			BatchStep{},
			ok,
			BatchResult{},
			"",
			f.stepBatch,
		},
		{
			post, "/envs/{id}/snapshot", "Take a snapshot of the episode, to go back to",
			nil,
			ok,
			Snapshot{},
			"",
			f.takeSnapshot,
		},
		{
			post, "/envs/{id}/restore",
			"Begin an episode with the steps of a snapshot, of this environment or another, and say what differs",
			Restore{},
			ok,
			Restored{},
			"",
			f.restoreEnv,
		},
		{
			post, "/envs/batch/snapshot", "Take a snapshot in each of several environments",
			BatchSnapshot{},
			ok,
			BatchSnapshots{},
			"",
			f.snapshotBatch,
		},
		{
			post, "/envs/batch/restore", "Take each of several environments to a snapshot",
			BatchRestore{},
			ok,
			BatchRestored{},
			"",
			f.restoreBatch,
		},
		{
			remove, "/envs/{id}/snapshots/{snapshot}", "Delete a snapshot", nil, http.StatusNoContent, nil, "",
			f.dropSnapshot,
		},
		{
			get, "/envs/{id}/questions",
			"List the changes that the policy asks about in a step and that wait for an answer", nil, ok,
			[]session.Approval{},
			"",
			limited(f.envQuestions),
		},
		{
			post, "/envs/{id}/questions/{number}",
			"Approve of a change in a step, or refuse it; the first answer counts",
			Verdict{},
			ok,
			Verdict{},
			"",
			limited(f.envAnswer),
		},
		{remove, "/envs/{id}", "End an environment", nil, http.StatusNoContent, nil, "", f.closeEnv},
	}, f.openRoutes(), []route{
		{get, "/openapi.json", "Describe this API", nil, ok, map[string]any{}, "", f.openAPI},
		{get, "/{$}", "Show a page with these paths", nil, ok, nil, "text/html", f.page},
	})
}

// tokenDoc says what tokens there are.
const tokenDoc = "The server's token is good for everything. That of a session or an environment, which " +
	"is in the answer " +
	"that makes it, is good for that one alone: it cannot begin, list or cancel sessions, nor reach another."

func (f *Front) health(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, Health{"healthy", "AIOpsLab"})
}

func (f *Front) listProblems(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, f.problems)
}

func (f *Front) listAgents(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, f.Agents)
}

func (f *Front) openAPI(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, document(f.routes()))
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// document is the OpenAPI description of routes.
func document(routes []route) map[string]any {
	types := schemas{}
	mistake := map[string]any{
		"description": "What is wrong",
		"content":     jsonContent(types.of(reflect.TypeFor[Mistake]())),
	}
	paths := map[string]map[string]any{}
	for _, r := range routes {
		operation := map[string]any{"summary": r.summary, "operationId": operationID(r)}
		answer := map[string]any{"description": http.StatusText(r.status)}
		switch several, ok := r.response.(oneOf); {
		case ok:
			answer["content"] = jsonContent(types.oneOf(several))
		case r.response != nil:
			answer["content"] = jsonContent(types.of(reflect.TypeOf(r.response)))
		case r.media != "":
			answer["content"] = map[string]any{r.media: map[string]any{"schema": map[string]any{"type": "string"}}}
		}
		operation["responses"] = map[string]any{fmt.Sprint(r.status): answer, "default": mistake}
		if r.request != nil {
			operation["requestBody"] = map[string]any{"content": jsonContent(types.of(reflect.TypeOf(r.request)))}
		}
		var parameters []any
		for _, m := range parameter.FindAllStringSubmatch(r.path, -1) {
			parameters = append(parameters, map[string]any{
				"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"},
			})
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if r.path == "/health" {
			operation["security"] = []any{}
		}
		path := strings.TrimSuffix(r.path, "{$}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.method)] = operation
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "AIOpsLab", "version": "1",
			"description": "A lab in which AI agents operate a live cloud. Errors are objects with a detail.",
		},
		"paths":    paths,
		"security": []any{map[string]any{"token": []string{}}, map[string]any{}},
		"components": map[string]any{
			"schemas": types,
			"securitySchemes": map[string]any{
				"token": map[string]any{"type": "http", "scheme": "bearer", "description": tokenDoc},
			},
		},
	}
}

func jsonContent(schema map[string]any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

// operationID is a name for clients that are generated: post_sessions_id_act.
func operationID(r route) string {
	name := strings.ToLower(r.method) + strings.NewReplacer("/", "_", "{", "", "}", "", "$", "", "-", "_", ".",
		"_").Replace(r.path)
	return strings.TrimSuffix(name, "_")
}

// page answers GET /.
func (f *Front) page(w http.ResponseWriter, _ *http.Request) error {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>AIOpsLab</title>\n" +
		"<h1>AIOpsLab</h1>\n<table>\n")
	for _, r := range f.routes() {
		fmt.Fprintf(&b, "<tr><td>%s<td><code>%s</code><td>%s\n", r.method,
			html.EscapeString(strings.TrimSuffix(r.path, "{$}")), html.EscapeString(r.summary))
	}
	b.WriteString("</table>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // Nobody is there to be told.
	return nil
}
