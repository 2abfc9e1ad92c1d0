package aci

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const patch = `kubectl patch svc user-service -n test-social-network --type='json' -p='[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9090}]'`

func fenced(code string) string { return "Action:\n```\n" + code + "\n```" }

// indented is a response as the original's own tests have it.
func indented(code string) string {
	return "\n        Action:\n        ```\n        " + code + "\n        ```\n        "
}

func TestParse(t *testing.T) {
	none := map[string]any{}
	tests := []struct {
		name     string
		response string
		want     Call
	}{
		{"no arguments", indented(`myApi()`), Call{Name: "myApi", Kwargs: none}},
		{"a number", indented(`myApi(10)`), Call{Name: "myApi", Args: []any{int64(10)}, Kwargs: none}},
		{"two arguments", indented(`myApi(10, 'error')`), Call{Name: "myApi", Args: []any{int64(10), "error"}, Kwargs: none}},
		{"a command", indented(`exec_shell("kubectl get pods -n test-social-network")`), Call{Name: "exec_shell", Args: []any{"kubectl get pods -n test-social-network"}, Kwargs: none}},
		{"quotes in a command, not escaped", indented(`exec_shell("` + patch + `")`), Call{Name: "exec_shell", Args: []any{patch}, Kwargs: none}},
		{"quotes in a command, escaped", fenced(`exec_shell("echo \"hi\"")`), Call{Name: "exec_shell", Args: []any{`echo "hi"`}, Kwargs: none}},
		{"a timeout by name", fenced(`exec_shell("sleep 1", timeout=60)`), Call{Name: "exec_shell", Args: []any{"sleep 1"}, Kwargs: map[string]any{"timeout": int64(60)}}},
		{"a timeout by position", fenced(`exec_shell('sleep 1', 60)`), Call{Name: "exec_shell", Args: []any{"sleep 1", int64(60)}, Kwargs: none}},
		{"a timeout behind quotes that are not escaped", fenced(`exec_shell(command="echo "a" b", timeout=5)`), Call{Name: "exec_shell", Args: []any{`echo "a" b`}, Kwargs: map[string]any{"timeout": int64(5)}}},
		{"a command by name", fenced(`exec_shell(command="ls")`), Call{Name: "exec_shell", Kwargs: map[string]any{"command": "ls"}}},
		{"triple quotes", fenced("exec_shell(\"\"\"cat <<EOF\n\"a\" 'b'\nEOF\"\"\")"), Call{Name: "exec_shell", Args: []any{"cat <<EOF\n\"a\" 'b'\nEOF"}, Kwargs: none}},
		{"a language", "```python\nget_logs('a', 'b')\n```", Call{Name: "get_logs", Args: []any{"a", "b"}, Kwargs: none}},
		{"inline", "```submit(\"Yes\")```", Call{Name: "submit", Args: []any{"Yes"}, Kwargs: none}},
		{"inline with a language", "```python submit(\"Yes\")```", Call{Name: "submit", Args: []any{"Yes"}, Kwargs: none}},
		{"CRLF", "Action:\r\n```\r\nmyApi(1)\r\n```\r\n", Call{Name: "myApi", Args: []any{int64(1)}, Kwargs: none}},
		{"tildes", "~~~\nsubmit()\n~~~", Call{Name: "submit", Kwargs: none}},
		{"a comment first", fenced("# look at the pods\nget_logs('a', 'b')  # of b"), Call{Name: "get_logs", Args: []any{"a", "b"}, Kwargs: none}},
		{"an assignment", fenced(`logs = get_logs("a", "b")`), Call{Name: "get_logs", Args: []any{"a", "b"}, Kwargs: none}},
		{"no closing fence", "```\nsubmit([])", Call{Name: "submit", Args: []any{[]any{}}, Kwargs: none}},
		{"no fence", "Action: submit(\"No\")", Call{Name: "submit", Args: []any{"No"}, Kwargs: none}},
		{"backticks in a command", fenced("exec_shell('echo ```x``` done')"), Call{Name: "exec_shell", Args: []any{"echo ```x``` done"}, Kwargs: none}},
		{"submit a list", fenced(`submit(['service1','service2'])`), Call{Name: "submit", Args: []any{[]any{"service1", "service2"}}, Kwargs: none}},
		{"submit by name", fenced(`submit(faulty_components=['s1','s2','s3'])`), Call{Name: "submit", Kwargs: map[string]any{"faulty_components": []any{"s1", "s2", "s3"}}}},
		{"submit a dict", fenced("submit({\n  'system_level': 'xxx',\n  \"fault_type\": \"yyy\",\n})"), Call{Name: "submit", Args: []any{map[string]any{"system_level": "xxx", "fault_type": "yyy"}}, Kwargs: none}},
		{"submit a tuple", fenced(`submit(('a','b'))`), Call{Name: "submit", Args: []any{[]any{"a", "b"}}, Kwargs: none}},
		{"submit None", fenced(`submit(None)`), Call{Name: "submit", Args: []any{nil}, Kwargs: none}},
		{"signs and floats", fenced(`foo(-1, +2, 1.5, 1e3, 0x10, True)`), Call{Name: "foo", Args: []any{int64(-1), int64(2), 1.5, 1000.0, int64(16), true}, Kwargs: none}},
		{"strings that follow one another", fenced("foo('a' \"b\"\n  'c')"), Call{Name: "foo", Args: []any{"abc"}, Kwargs: none}},
		{"a regular expression", fenced(`exec_shell("grep -E '^\d+\.' f | sed 's/\\n/x/'")`), Call{Name: "exec_shell", Args: []any{`grep -E '^\d+\.' f | sed 's/\n/x/'`}, Kwargs: none}},
		{"a raw string", fenced(`exec_shell(r"a\nb")`), Call{Name: "exec_shell", Args: []any{`a\nb`}, Kwargs: none}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.response)
			if err != nil {
				t.Fatal(err)
			}
			got.Context = nil
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestContext(t *testing.T) {
	got, err := Parse("Thought: look at the logs.\n        \n        Action:\n        ```get_logs('compose-post-service','test-social-network')```\n\n        This will help me understand the current state of the application.\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Thought: look at the logs.\n        \n        Action:", "This will help me understand the current state of the application."}
	if diff := cmp.Diff(want, got.Context); diff != "" || len(got.Args) != 2 {
		t.Error(diff, got.Args)
	}
}

func TestSeveralCalls(t *testing.T) {
	for _, response := range []string{
		fenced("exec_shell(\"ls\")\nexec_shell(\"pwd\")"),
		fenced(`exec_shell("ls")`) + "\n" + fenced(`exec_shell("pwd")`),
		fenced("exec_shell(\"ls\"); exec_shell(\"pwd\")"),
	} {
		got, err := Parse(response)
		if err != nil {
			t.Errorf("%q: %v", response, err)
			continue
		}
		if got.Args[0] != "ls" || !strings.Contains(got.Note, "Only the first API call") {
			t.Errorf("%q: %+v", response, got)
		}
	}
}

func TestErrors(t *testing.T) {
	for response, want := range map[string]string{
		"":                               "No API call found!",
		"I am not sure.":                 "No API call found!",
		fenced(`echo "Hello World"`):     "is not one",
		fenced(``):                       "The block is empty",
		fenced(`submit`):                 "write submit()",
		fenced(`submit(Yes)`):            `Yes is not in quotes; write "Yes"`,
		fenced(`submit(["a", "b")`):      `A comma or "]" is missing`,
		fenced(`get_logs("a" + "b")`):    "A comma or a closing parenthesis is missing",
		fenced(`get_logs(a="1", "b")`):   "positional argument behind a keyword",
		fenced(`get_logs(a="1", a="2")`): "twice",
		fenced(`submit("Yes`):            "is not closed",
		fenced(`submit({1: 2})`):         "must be a string",
		fenced(`submit(f"{x}")`):         `prefix "f" is not supported`,
		fenced(`submit("Yes").lower()`):  "behind the call",
		fenced("submit(" + strings.Repeat("[", 100) + strings.Repeat("]", 100) + ")"): "nested too deep",
	} {
		call, err := Parse(response)
		if err == nil {
			t.Errorf("%q: no error, but %+v", response, call)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "exec_shell(\"kubectl get services --all-namespaces\")") {
			t.Errorf("%q: %v", response, err)
		}
	}
}

// TestQuotedCommands: whatever the command, a call that quotes it properly is read as it is.
func TestQuotedCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.String().Draw(t, "command")
		command = strings.NewReplacer("```", "", "~~~", "", "\r", "").Replace(command)
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(command)
		got, err := Parse(fenced(`exec_shell("` + quoted + `")`))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Args) != 1 || got.Args[0] != command {
			t.Fatalf("%q became %q", command, got.Args)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{fenced(`exec_shell("ls")`), indented(`exec_shell("` + patch + `")`), "```python\nsubmit({'a': [1, -2.5, None]})\n```", "submit(\"Yes\")", "```\nexec_shell('a'b')\n```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		call, err := Parse(s)
		if err != nil {
			return
		}
		if !strings.Contains(s, call.Name+"(") && !strings.Contains(s, call.Name) {
			t.Errorf("%q was made up from %q", call.Name, s)
		}
		if call.Kwargs == nil {
			t.Error("no map of keyword arguments")
		}
	})
}

func TestParseJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "exec_shell", "arguments": {"command": "ls", "timeout": 5}}`:                                   `exec_shell [] map[command:ls timeout:5] `,
		"```json\n{\"name\": \"submit\", \"arguments\": {\"has_anomaly\": \"Yes\"}}\n```":                        `submit [] map[has_anomaly:Yes] `,
		"<tool_call>{\"name\": \"submit\"}</tool_call>":                                                          `submit [] map[] `,
		"<tool_call>{\"name\": \"submit\", \"arguments\": \"{\\\"x\\\": [1]}\"}</tool_call>":                     `submit [] map[x:[1]] `,
		`{"type": "function", "function": {"name": "submit", "arguments": "{}"}}`:                                `submit [] map[] `,
		`{"function": "get_logs", "parameters": {"namespace": "x"}}`:                                             `get_logs [] map[namespace:x] `,
		`{"action": "submit", "action_input": "Yes"}`:                                                            `submit [Yes] map[] `,
		`[{"name": "get_logs", "arguments": ["x", "geo"]}, {"name": "submit"}]`:                                  `get_logs [x geo] map[] Only the first API call, get_logs, was made; write one call at a time.`,
		"<tool_call>{\"name\": \"a\"}</tool_call><tool_call>{\"name\": \"b\"}</tool_call>":                       `a [] map[] Only the first API call, a, was made; write one call at a time.`,
		`[TOOL_CALLS][{"name": "submit", "arguments": {}}]`:                                                      `submit [] map[] `,
		"<function=exec_shell>{\"command\": \"ls\"}</function>":                                                  `exec_shell [] map[command:ls] `,
		"<tool_call><function=f><parameter=a>\n2\n</parameter><parameter=b>x</parameter></function></tool_call>": `f [] map[a:2 b:x] `,
		// The words of a call do not make another one.
		"```\nexec_shell(\"echo '<tool_call>{}</tool_call>'\")\n```": `exec_shell [echo '<tool_call>{}</tool_call>'] map[] `,
		// JSON that is no call.
		`{"name": "two words"}`: `error`, `{"arguments": {}}`: `error`, `{"name": `: `error`, "<tool_call></tool_call>": `error`, `[]`: `error`,
		// What is thought is not done.
		"<think>```\nsubmit(\"No\")\n```</think>": `error`,
	} {
		got := "error"
		if c, err := Parse(text); err == nil {
			got = fmt.Sprint(c.Name, " ", c.Args, " ", c.Kwargs, " ", c.Note)
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// A flood is read in a time that is no worse than its length. If it were, nobody would wait for the end
// of this test.
func TestParseFloods(t *testing.T) {
	const size = 1 << 17
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	half := func(s string) string { return strings.Repeat(s, size/2/len(s)) }
	nested := strings.Repeat("```\n"+strings.Repeat("f(\"x ", size/maxFences/5), maxFences)
	for _, s := range []string{
		fill("```"), fill("```\nx\n"), fill("f(\n"), fill("~~~```"), "exec_shell(\"" + fill("\")\n"), fill("a(1)\n"), fill("``` f(\""),
		half("x\n") + half(" "), half("a\n") + half("`"), "f(" + fill("["), "f(" + fill("("), fill("f(\\\n"), fill("# "), fill("#\n"), fill("//\n"),
		"```\n" + fill("#\n"), nested, "```\nexec_shell('" + fill("')\n#\n"), fill("action: "), fill("x = "), "f(" + fill("a=1,"),
		"f(" + fill("\\\n"), "```\n" + half(" ") + half("\n"), "exec_shell(\"" + fill("\") #x\n"), "exec_shell(\"" + fill("\");\n\n"),
		fill("<think>"), fill("</think>"), fill("<tool_call>"), fill("<tool_call>{}</tool_call>"), fill("<function=f>"), fill("{"), fill("[{"),
		half("<tool_call>") + half("</tool_call>"), half("<think>") + half("</think>"), fill("<tool_call>{\"name\":"), fill("<parameter=a>"),
		fill("[TOOL_CALLS]"), fill("{\"name\": "), fill("{\"name\": \"x y\"}\n"), "<function=f>" + fill("<parameter=a>x</parameter>"),
	} {
		_, _ = Parse(s)
	}
}
