package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/problem"
)

// Every path that is served is described, and every path that is described is served.
func TestOpenAPI(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	doc := get[struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			Summary     string         `json:"summary"`
			OperationID string         `json:"operationId"`
			Parameters  []any          `json:"parameters"`
			Responses   map[string]any `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}](l, "GET", "/openapi.json", "")
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	described := 0
	ids := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			described++
			if o.Summary == "" || len(o.Responses) != 2 || ids[o.OperationID] || strings.Count(path, "{") != len(o.Parameters) {
				t.Errorf("%s %s: %+v", method, path, o)
			}
			ids[o.OperationID] = true
			r, err := http.NewRequest(strings.ToUpper(method), l.server.URL+strings.ReplaceAll(path, "{id}", "no-such-id"), nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := l.server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			var m Mistake
			_ = json.NewDecoder(res.Body).Decode(&m)
			res.Body.Close()
			if res.StatusCode == http.StatusMethodNotAllowed || strings.Contains(m.Detail, "openapi.json") {
				t.Errorf("%s %s is described, and not served: %d %s", method, path, res.StatusCode, m.Detail)
			}
		}
	}
	if n := len(l.front.routes()); described != n {
		t.Errorf("%d routes are described of %d", described, n)
	}
	// References lead somewhere, and what is required is there.
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(b), `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	required, _ := doc.Components.Schemas["NewSession"]["required"].([]any)
	if len(required) != 0 { // A problem, or a document.
		t.Errorf("a new session requires %v", required)
	}
	var tasks []any
	for _, task := range problem.Tasks {
		tasks = append(tasks, string(task))
	}
	for _, name := range []string{"NewEnv", "Problem"} {
		properties, _ := doc.Components.Schemas[name]["properties"].(map[string]any)
		task, _ := properties["task"].(map[string]any)
		if d := cmp.Diff(any(tasks), task["enum"]); d != "" {
			t.Errorf("the tasks of %s (-there are +described):\n%s", name, d)
		}
	}
	if required, _ := doc.Components.Schemas["Said"]["required"].([]any); !slices.Contains(required, any("response")) {
		t.Errorf("what is said requires %v", required)
	}
	spec := schemas{}
	if s := spec.object(reflect.TypeFor[Spec]()); s["properties"].(map[string]any)["problem"] == nil {
		t.Errorf("fields of an embedded struct are lost: %v", s)
	}
}
