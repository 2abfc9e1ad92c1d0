package workload

import (
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"reflect"
	"testing"
	"testing/fstest"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
)

func plan(t *testing.T, mix string, seed uint64, n int) []Planned {
	t.Helper()
	s := Spec{Mix: MixOf(t, mix), Arrivals: &Arrivals{Rate: Constant(100)}, Seed: seed}
	list, err := s.Plan(n)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRequestsAreSeeded(t *testing.T) {
	if a, b := plan(t, "social-mixed", 1, 500), plan(t, "social-mixed", 1, 500); !reflect.DeepEqual(a, b) {
		t.Error("the same seed gives other requests")
	}
	if a, b := plan(t, "social-mixed", 1, 500), plan(t, "social-mixed", 2, 500); reflect.DeepEqual(a, b) {
		t.Error("another seed gives the same requests")
	}
}

// What is drawn for a request must not depend on which operation was drawn for it.
func TestParametersAreIndependentOfOperations(t *testing.T) {
	days := map[string]int{}
	total := 0
	for _, p := range plan(t, "hotel-mixed", 11, 20_000) {
		if p.Operation == "search" {
			u, _ := url.Parse(p.Path)
			days[u.Query().Get("inDate")]++
			total++
		}
	}
	if len(days) != 15 {
		t.Errorf("dates %v", days)
	}
	for day, n := range days {
		if !near(float64(n), float64(total)/15, 0.2) {
			t.Errorf("%s: %d of %d", day, n, total)
		}
	}
}

func TestMixErrors(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"field", "name: m\noperations:\n- name: a\n  wieght: 1\n  path: /", `m.yaml:4: unknown field "wieght"; did you mean "weight"?`},
		{"empty", "name: m", "m.yaml: a mix needs operations"},
		{"path", "name: m\noperations: [{name: a, weight: 1, path: x}]", `m.yaml:2: operation "a": path must begin with a slash`},
		{"weights", "name: m\noperations: [{name: a, path: /}]", `m.yaml:2: give operations a weight, such as "weight: 1"`},
		{"function", "name: m\noperations: [{name: a, weight: 1, path: '/{{rand 1 2}}'}]", `m.yaml:2: operation "a": path:1: function "rand" not defined; known are add, choice, day, float, int, line, mul, near, number, other, pad, quote, repeat, text, times`},
		{"variable", "name: m\noperations: [{name: a, weight: 1, path: '/{{.id}}'}]", `m.yaml:2: operation "a": path:1:3: executing "path" at <.id>: map has no entry for key "id"`},
		{"bounds", "name: m\noperations: [{name: a, weight: 1, path: '/{{int 2 1}}'}]", `m.yaml:2: operation "a": path:1:3: executing "path" at <int 2 1>: error calling int: no whole number is between 2 and 1`},
		{"status", "name: m\noperations: [{name: a, weight: 1, path: /, expect: {status: [20]}}]", `m.yaml:2: operation "a": expect: 20 is no HTTP status`},
		{"regexp", "name: m\noperations: [{name: a, weight: 1, path: /, expect: {body: '('}}]", "m.yaml:2: operation \"a\": expect: body: error parsing regexp: missing closing ): `(`"},
		{"template of a regexp", "name: m\noperations: [{name: a, weight: 1, path: /, expect: {body: '{{.id}}'}}]", `m.yaml:2: operation "a": expect: body:1:2: executing "expect: body" at <.id>: map has no entry for key "id"`},
		{"jq", "name: m\noperations: [{name: a, weight: 1, path: /, expect: {json: ['.a ==']}}]", `m.yaml:2: operation "a": expect: json: ".a ==" is no jq program: unexpected EOF`},
		{"jq variable", "name: m\noperations: [{name: a, weight: 1, path: /, vars: {id: 1}, expect: {json: ['. == $od']}}]", `m.yaml:2: operation "a": expect: json: ". == $od": variable not defined: $od; known are $id, $n, $user`},
		{"capture", "name: m\noperations: [{name: a, weight: 1, path: /, capture: {id: '('}}]", `m.yaml:2: operation "a": capture: id: "(" is no jq program: unexpected EOF`},
		{"then field", "name: m\noperations:\n- name: a\n  weight: 1\n  path: /\n  then:\n  - path: /\n    wihtin: 2s", `m.yaml:8: unknown field "wihtin"; did you mean "within"?`},
		{"then", "name: m\noperations: [{name: a, weight: 1, path: /, then: [{path: '/{{.id}}', within: -1s}, {path: x}]}]", "m.yaml:2: operation \"a\": then 1: within must not be negative\nm.yaml:2: operation \"a\": then 2: path must begin with a slash\nm.yaml:2: operation \"a\": then 1: path:1:3: executing \"path\" at <.id>: map has no entry for key \"id\""},
		{"captured too late", "name: m\noperations: [{name: a, weight: 1, path: /, then: [{path: /, expect: {json: [$id]}, capture: {id: .id}}]}]", `m.yaml:2: operation "a": then 1: expect: json: "$id": variable not defined: $id; known are $n, $user`},
		{"recall", "name: m\noperations: [{name: a, weight: 1, path: /, recall: post}]", `m.yaml:2: operation "a": recall: no operation keeps "post"`},
		{"recall of nothing", "name: m\noperations: [{name: a, weight: 1, path: /, keep: post}, {name: b, weight: 1, recall: post, path: '/{{if .kept}}{{.kept.id}}{{end}}'}]", `m.yaml:2: operation "b": path:1:20: executing "path" at <.kept.id>: map has no entry for key "id"`},
		{"twice", "name: m\noperations: [{name: a, weight: 1, path: /}, {name: a, weight: 1, path: /}]", `m.yaml:2: operation "a" is there twice`},
		{"fields", "name: m\noperations:\n- name: a\n  weight: 1\n  path: /\n  query: [x]", `m.yaml:6: names and values are expected, as in "{name: value}"`},
		{"lines", "name: m\noperations:\n- name: a\n  weight: .nan\n  path: /\n  then:\n  - path: x\n- name: a\n  weight: 1\n  path: /\n- name: b\n  weight: 1\n  path: y", "m.yaml:4: operation \"a\": weight must be between 0 and 1e+06\nm.yaml:7: operation \"a\": then 1: path must begin with a slash\nm.yaml:8: operation \"a\" is there twice\nm.yaml:13: operation \"b\": path must begin with a slash"},
		{"tab", "name: m\noperations:\n\t- name: a", "m.yaml:3: a tab indents this line; YAML takes spaces only"},
		{"several", "operations: [{path: x, weight: -1}]", "m.yaml: a mix needs a name\nm.yaml:1: operation 1 needs a name\nm.yaml:1: operation 1: weight must be between 0 and 1e+06\nm.yaml:1: operation 1: path must begin with a slash\nm.yaml:1: give operations a weight, such as \"weight: 1\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseMix("m.yaml", []byte(tt.doc))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestFindMix(t *testing.T) {
	shop := fstest.MapFS{
		"few.yaml":  {Data: []byte("name: few\noperations: [{name: a, weight: 1, path: /}]")},
		"many.yaml": {Data: []byte("name: many\noperations: [{name: a, weight: 9, path: x}]")},
	}
	for _, tt := range []struct {
		files fs.FS
		name  string
		want  string
	}{
		{shop, "few", "<nil>"},
		{shop, "many", `many.yaml:2: operation "a": path must begin with a slash`},
		{shop, "fwe", `there is no mix "fwe"; did you mean "few"?`},
		{shop, "../few", `there is no mix "../few"; did you mean "few"?`},
		{shop, "everything", `there is no mix "everything"; known are few, many`},
		{fstest.MapFS{}, "few", `there is no mix "few": the application has no mixes`},
		{nil, "few", `there is no mix "few": the application has no mixes`},
	} {
		if _, err := FindMix(tt.files, tt.name); fmt.Sprint(err) != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

func FuzzParseMix(f *testing.F) {
	for _, a := range []*app.App{hotel.App(), social.App()} {
		files, err := fs.Glob(a.Mixes, "*.yaml")
		if err != nil || len(files) == 0 {
			f.Fatal(files, err)
		}
		for _, name := range files {
			data, err := fs.ReadFile(a.Mixes, name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = ParseMix("m", data) })
}

func TestSpecErrors(t *testing.T) {
	mix := MixOf(t, "hotel-mixed")
	think := Think{Min: time.Second, Max: 10 * time.Second}
	tests := []struct {
		name string
		spec Spec
		want string
	}{
		{"fine", Spec{Mix: mix, Arrivals: &Arrivals{Process: Normal, Rate: Constant(10)}, Timeout: time.Second}, ""},
		{"users", Spec{Mix: mix, Users: &Users{Count: 10, Think: think}}, ""},
		{"trace", Spec{Mix: mix, Arrivals: &Arrivals{Replay: &Replay{Trace: "time\n1\n2\n"}}}, ""},
		{"endless", Spec{Mix: mix, Arrivals: &Arrivals{Rate: Constant(math.Inf(1))}}, "+Inf requests/s; the most is 10000"},
		{"peak", Spec{Mix: mix, Arrivals: &Arrivals{Rate: Rate{{Daily: &Daily{Mean: 9000, Amplitude: 0.5}}}}}, "13500 requests/s; the most is 10000"},
		{"neither", Spec{Mix: mix}, "rate: it is missing: requests a second, such as \"rate: 10\""},
		{"no mix", Spec{Arrivals: &Arrivals{Rate: Constant(1)}}, "a mix is needed"},
		{"process", Spec{Mix: mix, Arrivals: &Arrivals{Process: "pareto", Rate: Constant(1)}}, `process: there is no process "pareto"; known are constant, exponential, normal`},
		{"operation", Spec{Mix: mix, Arrivals: &Arrivals{Replay: &Replay{Trace: "time,operation\n1,serach\n2,serach\n3,search"}}}, `replay.trace: request 1: in mix hotel-mixed there is no operation "serach"; did you mean "search"?`},
		{"empty trace", Spec{Mix: mix, Arrivals: &Arrivals{Replay: &Replay{Trace: "time\n1\n1\n"}}}, "replay.trace: it needs requests at two different times at least, a millisecond apart"},
		{"too fast", Spec{Mix: mix, Arrivals: &Arrivals{Replay: &Replay{Trace: "time\n0\n1e-6\n", Speed: 1000}}}, "replay.trace: it needs requests at two different times at least, a millisecond apart"},
		{"much too fast", Spec{Mix: mix, Arrivals: &Arrivals{Replay: &Replay{Trace: "time\n0\n1\n", Speed: 1e9}}}, "replay.speed: 1e+09: want more than 0, at most 1000\nreplay.trace: it needs requests at two different times at least, a millisecond apart"},
		{"rate and trace", Spec{Mix: mix, Arrivals: &Arrivals{Rate: Constant(1), Replay: &Replay{}}}, "replay: it has its own times; leave out process, rate, noise and surges"},
		{"rate and users", Spec{Mix: mix, Arrivals: &Arrivals{Rate: Constant(1)}, Users: &Users{}}, "users: they send as they are answered; leave out rate, noise, surges, process and replay"},
		{"a rise", Spec{Mix: mix, Users: &Users{Count: 10, Think: think, Spawn: 2, From: 3}}, ""},
		{"a rise from too many", Spec{Mix: mix, Users: &Users{Count: 10, Think: think, Spawn: -1, From: 11}}, "users.spawn: want users a second, at most 10000\nusers.from: want how many users there are at first, at most count, with spawn"},
		{"think", Spec{Mix: mix, Users: &Users{Think: Think{Min: 2, Max: 1}}}, "users.count: it must be positive\nusers.think: it needs a min and a max that is not less"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.spec.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
