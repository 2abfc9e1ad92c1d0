package aci

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/internal/term"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; run with -update if it is right:\n%s", file, diff)
	}
}

func TestDocs(t *testing.T) {
	var b strings.Builder
	for _, task := range term.Tasks {
		actions := Actions(task)
		if last := actions[len(actions)-1]; last.Name != "submit" || last.Kind != Submit {
			t.Errorf("%s: %s is last", task, last.Name)
		}
		docs := Docs(actions)
		if len(docs) != len(actions) {
			t.Errorf("%s: %d docs of %d actions", task, len(docs), len(actions))
		}
		for _, a := range actions {
			if a.Name != "submit" && task != term.Tasks[0] {
				continue // The others are the same in every task.
			}
			b.WriteString("== " + task + " " + a.Name + " (" + string(a.Kind) + ")\n" + docs[a.Name] + "\n" + string(a.Schema()) + "\n\n")
		}
		b.WriteString("== " + task + " description\n" + Description(task, hotel.App(), "scale it.") + "\n\n== " + task + " instructions\n" + Instructions(task) + "\n\n")
	}
	golden(t, "docs.golden", b.String())
}

func TestSchema(t *testing.T) {
	var s struct {
		Type       string
		Required   []string
		Properties map[string]struct {
			Type    string
			Default any
			Enum    []string
		}
		AdditionalProperties bool
	}
	if err := json.Unmarshal(getLogs.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "object" || !slices.Equal(s.Required, []string{"namespace", "service"}) || s.AdditionalProperties {
		t.Errorf("%+v", s)
	}
	if p := s.Properties["tail"]; p.Type != "integer" || p.Default != 200.0 {
		t.Errorf("%+v", p)
	}
	if p := s.Properties["level"]; p.Type != "string" || len(p.Enum) != 5 {
		t.Errorf("%+v", p)
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	if !slices.Equal(names, slices.Sorted(slices.Values(getLogs.names()))) {
		t.Error(names)
	}
}

func TestBinding(t *testing.T) {
	for _, tt := range []struct {
		call string
		want logsArgs
		err  string
	}{
		{call: `get_logs("a", "b")`, want: logsArgs{Namespace: "a", Service: "b", Tail: 200}},
		{call: `get_logs("a", service="b", tail="50", previous="true", level="ERROR")`, want: logsArgs{Namespace: "a", Service: "b", Tail: 50, Previous: true, Level: "error"}},
		{call: `get_logs(service="b", namespace="a", tail=10.0, since=5)`, want: logsArgs{Namespace: "a", Service: "b", Tail: 10, Since: 5}},
		{call: `get_logs("a", "b", None, None, False, None)`, want: logsArgs{Namespace: "a", Service: "b", Tail: 200}},
		{call: `get_logs("a", "b", 1, 2, True)`, want: logsArgs{Namespace: "a", Service: "b", Tail: 1, Since: 2, Previous: true}},
		{call: `get_logs("a")`, err: "1 argument missing: service"},
		{call: `get_logs()`, err: "2 arguments missing: namespace, service"},
		{call: `get_logs("a", "b", servce="c")`, err: "it has no argument servce. Did you mean service?"},
		{call: `get_logs("a", "b", namespace="c")`, err: "the argument namespace is given twice"},
		{call: `get_logs("a", "b", 1, 2, True, "info", 7)`, err: "it takes 6 arguments, but 7 were given"},
		{call: `get_logs(5, "b")`, err: "namespace must be a string, not 5"},
		{call: `get_logs(None, "b")`, err: "namespace must be a string, not None"},
		{call: `get_logs("a", ["b"])`, err: "service must be a string, not a list"},
		{call: `get_logs("a", "b", tail="many")`, err: `tail must be a whole number, not "many"`},
		{call: `get_logs("a", "b", tail=1.5)`, err: "tail must be a whole number, not 1.5"},
		{call: `get_logs("a", "b", previous="maybe")`, err: `previous must be True or False, not "maybe"`},
		{call: `get_logs("a", "b", level="loud")`, err: `level must be one of debug, info, warn, error, fatal, not "loud"`},
	} {
		c, err := Parse(fenced(tt.call))
		if err != nil {
			t.Fatal(err)
		}
		args, _, err := getLogs.bind(c)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), "get_logs(namespace: str, service: str, tail: int = 200") {
				t.Errorf("%s: %v", tt.call, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.call, err)
			continue
		}
		if diff := cmp.Diff(&tt.want, args.Interface()); diff != "" {
			t.Errorf("%s: %s", tt.call, diff)
		}
	}
}

func TestSubmit(t *testing.T) {
	for _, tt := range []struct {
		task, call string
		answer     any
		invalid    bool
		note       string
	}{
		{task: term.Detection, call: `submit("Yes")`, answer: "Yes"},
		{task: term.Detection, call: `submit(has_anomaly="No")`, answer: "No"},
		{task: term.Detection, call: `submit()`, invalid: true},
		{task: term.Detection, call: `submit(True)`, answer: true},
		{task: term.Localization, call: `submit(["geo", "rate"])`, answer: []any{"geo", "rate"}},
		{task: term.Localization, call: `submit(faulty_components=[])`, answer: []any{}},
		{task: term.Localization, call: `submit("geo")`, answer: "geo"},
		{task: term.Localization, call: `submit(None)`, answer: nil},
		{task: term.Analysis, call: `submit({"system_level": "Application", "fault_type": "Misconfiguration"})`, answer: map[string]any{"system_level": "Application", "fault_type": "Misconfiguration"}},
		{task: term.Analysis, call: `submit(analysis={})`, answer: map[string]any{}},
		{task: term.Analysis, call: `submit()`, answer: nil},
		{task: term.Analysis, call: `submit(None)`, answer: nil},
		{task: term.Mitigation, call: `submit()`, answer: nil},
		{task: term.Mitigation, call: `submit("done")`, answer: nil, note: "takes no argument"},
		{task: term.Mitigation, call: `submit(x=1)`, answer: nil, note: "takes no argument"},
	} {
		i := fake(t, tt.task, cluster())
		r := do(t, i, tt.call)
		if r.Submitted == tt.invalid || r.Failed != tt.invalid || !cmp.Equal(r.Answer, tt.answer) || !strings.Contains(r.Text, tt.note) {
			t.Errorf("%s %s: %+v", tt.task, tt.call, r)
		}
		if !tt.invalid && !strings.HasSuffix(r.Text, "SubmissionStatus.VALID_SUBMISSION") {
			t.Errorf("%s %s: %s", tt.task, tt.call, r.Text)
		}
	}
}

func TestUnknownAction(t *testing.T) {
	i := fake(t, term.Detection, cluster())
	for call, want := range map[string]string{
		`get_log("a", "b")`: "Invalid action: get_log. Did you mean get_logs? The actions are get_logs, get_metrics, read_metrics, get_traces, read_traces, get_alerts, get_topology, exec_shell, begin, commit, abort, undo, history, submit.",
		`__class__()`:       "Invalid action: __class__.",
		`exec_shel("ls")`:   "Did you mean exec_shell?",
	} {
		if r := do(t, i, call); !r.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v", call, r)
		}
	}
}

// FuzzDo: whatever a call holds, it is answered.
func FuzzDo(f *testing.F) {
	for _, s := range []string{"get_logs('a', 'b', tail=-1)", "exec_shell(5)", "submit({'a': [1]})", "get_metrics(namespace=[], x=1)", "submit(1, 2, 3)", "read_traces('../../x')"} {
		f.Add(s)
	}
	actions := Actions(term.Analysis)
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Parse(fenced(s))
		if err != nil {
			return
		}
		for _, a := range actions {
			args, _, err := a.bind(c)
			if (err == nil) == args.IsNil() && err == nil {
				t.Errorf("%s: neither arguments nor an error for %q", a.Name, s)
			}
			if err != nil && !strings.Contains(err.Error(), a.Signature()) {
				t.Errorf("%s: %v", a.Name, err)
			}
		}
	})
}
