package grade

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem"
)

// A service that was to be added is there if pods of its own answer for it alone, as the one does that it is like.
func TestAdded(t *testing.T) {
	program := func(image, command string) []Program { return []Program{{Image: image, Command: command}} }
	right := program("weaveworksdemos/catalogue:0.3.5", "/app")
	catalogue := Serving{Service: "catalogue", By: []Server{{Workload: "deployment/catalogue", Programs: right}}}
	added := Serving{Service: "partners", By: []Server{{Workload: "deployment/partners", Programs: right}}}
	by := func(servers ...Server) Serving { return Serving{Service: "partners", By: servers} }
	for name, tt := range map[string]struct {
		serving []Serving
		wrong   string
		want    string // "" for nothing to complain about
	}{
		"as asked":             {[]Serving{catalogue, added}, "", ""},
		"no Service":           {[]Serving{catalogue}, "", "nobody answers for service partners"},
		"no pod behind it":     {[]Serving{catalogue, by()}, "", "nobody answers for service partners"},
		"a second name":        {[]Serving{catalogue, by(catalogue.By...)}, "", "answered by deployment/catalogue, not by pods of its own"},
		"an address elsewhere": {[]Serving{catalogue, by(Server{Address: "10.0.0.1"})}, "", "answered by 10.0.0.1"},
		"a stub": {
			[]Serving{catalogue, by(Server{Workload: "deployment/partners", Programs: program("nginx", "")})},
			"",
			"answered by nginx, not by what catalogue runs",
		},
		"a stub in the right image": {
			[]Serving{catalogue, by(Server{Workload: "deployment/partners", Programs: program("weaveworksdemos/catalogue:0.3.5", "sh")})},
			"", "answered by weaveworksdemos/catalogue running sh",
		},
		"users get there too": {
			[]Serving{{Service: "catalogue", By: append(added.By, catalogue.By...)}, added},
			"",
			"pods of partners answer for service catalogue",
		},
		"a wrong answer": {[]Serving{catalogue, added}, "it answers 500", "does not answer as catalogue does: it answers 500"},
	} {
		t.Run(name, func(t *testing.T) {
			o := fine()
			o.Service, o.Wrong = "partners", tt.wrong
			g := &problem.Goal{Want: []problem.Want{{Service: "partners", Like: "catalogue", Port: 80, Replicas: 3}}}
			list := Unmet(g, turn, Look{Serving: []Serving{catalogue}}, Look{Serving: tt.serving, Operated: []Operated{o}})
			if tt.want == "" && len(list) > 0 || tt.want != "" && (len(list) != 1 || !strings.Contains(list[0], tt.want)) {
				t.Errorf("%q, want %q", list, tt.want)
			}
		})
	}
}

// What fails on the way counts as well.
func TestBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		budget float64
		spent  *Spent
		want   string
	}{
		"nobody counts":   {0, nil, ""},
		"within it":       {0.05, &Spent{1000, 50}, ""},
		"beyond it":       {0.05, &Spent{1000, 51}, "51 of 1000 requests have failed since the agent's turn began, more than 5 %"},
		"nobody was here": {0.05, &Spent{}, ""},
		"it is not known": {0.05, nil, "it is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			list := Unmet(&problem.Goal{Budget: tt.budget}, turn, Look{}, Look{Spent: tt.spent})
			if got := strings.Join(list, "; "); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
