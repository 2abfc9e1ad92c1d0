package workload

import (
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func plan(t *testing.T, mix string, seed uint64, n int) []Planned {
	t.Helper()
	m, err := BuiltinMix(mix)
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Mix: m, Arrivals: &Arrivals{Rate: Constant(100)}, Seed: seed}
	list, err := s.Plan(n)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every built-in mix has the parts it says, and every request of it is well-formed.
func TestBuiltinMixes(t *testing.T) {
	const n = 20_000
	parts := map[string]map[string]float64{
		"hotel-booking":       {"search": 0.4, "recommend": 0.2, "user": 0.2, "reserve": 0.2},
		"hotel-mixed":         {"search": 0.6, "recommend": 0.39, "user": 0.005, "reserve": 0.005},
		"social-compose-post": {"compose-post": 50. / 51, "login": 1. / 51},
		"social-mixed":        {"read-home-timeline": 60. / 102, "read-user-timeline": 30. / 102, "compose-post": 10. / 102, "login": 2. / 102},
	}
	if got := Mixes(); len(got) != len(parts) {
		t.Errorf("mixes %v", got)
	}
	for mix, want := range parts {
		counts := map[string]int{}
		size := n
		if mix == "social-compose-post" {
			size = 2000
		}
		for _, p := range plan(t, mix, 3, size) {
			counts[p.Operation]++
			if _, err := url.ParseRequestURI(p.Path); err != nil {
				t.Fatal(err)
			}
		}
		for op, part := range want {
			sigma := math.Sqrt(float64(size) * part * (1 - part))
			if math.Abs(float64(counts[op])-part*float64(size)) > 4*sigma {
				t.Errorf("%s: %d of %d are %s, want a part of %g", mix, counts[op], size, op, part)
			}
		}
		if len(counts) != len(want) {
			t.Errorf("%s: %v", mix, counts)
		}
	}
}

var forms = map[string]*regexp.Regexp{
	"search":             regexp.MustCompile(`^GET /hotels\?inDate=2015-04-(09|1\d|2[0-3])&outDate=2015-04-(1\d|2[0-4])&lat=3[78]\.\d{4}&lon=-12[12]\.\d{3} $`),
	"recommend":          regexp.MustCompile(`^GET /recommendations\?require=(dis|rate|price)&lat=3[78]\.\d{4}&lon=-12[12]\.\d{3} $`),
	"user":               regexp.MustCompile(`^POST /user\?username=Cornell_\d{1,3}&password=\d{10,30} $`),
	"reserve":            regexp.MustCompile(`^POST /reservation\?inDate=20\d\d-\d\d-\d\d&outDate=20\d\d-\d\d-\d\d&lat=[\d.]+&lon=-[\d.]+&hotelId=\d{1,2}&customerName=Cornell_\d{1,3}&username=Cornell_\d{1,3}&password=\d{10,30}&number=1 $`),
	"login":              regexp.MustCompile(`^POST /api/user/login username=username_(\d{1,3})&password=password_\d{1,3}$`),
	"read-home-timeline": regexp.MustCompile(`^GET /wrk2-api/home-timeline/read\?user_id=\d{1,3}&start=\d{1,3}&stop=\d{2,3} $`),
	"read-user-timeline": regexp.MustCompile(`^GET /wrk2-api/user-timeline/read\?user_id=\d{1,3}&start=\d{1,3}&stop=\d{2,3} $`),
}

func TestRequestForms(t *testing.T) {
	for _, mix := range Mixes() {
		for _, p := range plan(t, mix, 5, 2000) {
			if re := forms[p.Operation]; re != nil {
				if text := p.Method + " " + p.Path + " " + p.Body; !re.MatchString(text) {
					t.Fatalf("%s: %s", p.Operation, text)
				}
				continue
			}
			checkPost(t, p)
		}
	}
}

var text = regexp.MustCompile(`^[a-zA-Z0-9]{256}( @username_\d{1,3}){1,6}( http://[a-zA-Z0-9]{64}){1,6}$`)

func checkPost(t *testing.T, p Planned) {
	t.Helper()
	form, err := url.ParseQuery(p.Body)
	if err != nil || p.Method != "POST" || p.Path != "/wrk2-api/post/compose" ||
		!slices.Contains(p.Headers, Field{"Content-Type", "application/x-www-form-urlencoded"}) {
		t.Fatalf("%+v: %v", p, err)
	}
	if !text.MatchString(form.Get("text")) {
		t.Fatalf("text %q", form.Get("text"))
	}
	if form.Get("username") != "username_"+form.Get("user_id") || strings.Contains(form.Get("text")+" ", "@"+form.Get("username")+" ") {
		t.Fatalf("%s mentions himself: %s", form.Get("username"), form.Get("text"))
	}
	ids := regexp.MustCompile(`^\[("\d{18}",?){1,5}\]$`)
	if !ids.MatchString(form.Get("media_ids")) || strings.Count(form.Get("media_ids"), ",") != strings.Count(form.Get("media_types"), ",") {
		t.Fatalf("media %s, %s", form.Get("media_ids"), form.Get("media_types"))
	}
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
	if _, err := BuiltinMix("hotel-mix"); err == nil || err.Error() != `there is no mix "hotel-mix"; did you mean "hotel-mixed"?` {
		t.Error(err)
	}
}

func FuzzParseMix(f *testing.F) {
	for _, m := range Mixes() {
		data, _ := mixFiles.ReadFile("mixes/" + m + ".yaml")
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = ParseMix("m", data) })
}

func TestSpecErrors(t *testing.T) {
	mix, err := BuiltinMix("hotel-mixed")
	if err != nil {
		t.Fatal(err)
	}
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
		{"rate and trace", Spec{Mix: mix, Arrivals: &Arrivals{Rate: Constant(1), Replay: &Replay{}}}, "replay: it has its own times; leave out process and rate"},
		{"rate and users", Spec{Mix: mix, Arrivals: &Arrivals{Rate: Constant(1)}, Users: &Users{}}, "users: they send as they are answered; leave out rate, process and replay"},
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
