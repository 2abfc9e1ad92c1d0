package noise

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/fault"
)

// document is what a problem of the catalog says of its faults, and where they are.
type document struct {
	App    string
	Faults []struct {
		Kind, Target string
		Params       yaml.Node
	}
	Tasks  []string
	Answer struct {
		Components []struct {
			Name    string
			Aliases []string
		}
	}
}

// localizations are the documents of the catalog that ask where a fault is, but for those about churn.
func localizations(t *testing.T) (list []document) {
	t.Helper()
	files, err := filepath.Glob("../../problem/catalog/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d document
		if err := yaml.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		churns := len(d.Faults) > 0 && slices.Contains([]string{"pod_kill", "container_kill"}, d.Faults[0].Kind)
		if slices.Contains(d.Tasks, "localization") && !churns {
			list = append(list, d)
		}
	}
	if len(list) < 30 {
		t.Fatalf("there are %d localizations", len(list))
	}
	return list
}

func (d *document) injections(t *testing.T, a *app.App) (list []Injection) {
	t.Helper()
	for _, f := range d.Faults {
		k, err := fault.Find(fault.Kinds(), f.Kind)
		if err != nil {
			t.Fatal(err)
		}
		bound, err := k.New(fault.Target{App: a, Service: f.Target}, &f.Params)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Injection{Reach: fault.ReachOf(bound), Do: func(context.Context) error { return nil }})
	}
	return list
}

// names reports whether services are the answer.
func (d *document) names(services []string) bool {
	for _, c := range d.Answer.Components {
		if !slices.ContainsFunc(services, func(s string) bool { return s == c.Name || slices.Contains(c.Aliases, s) }) {
			return false
		}
	}
	return len(services) == len(d.Answer.Components)
}

// looksAfter is how long services have been scaled when an agent looks: while a fault shows, and in the first moments of
// its turn.
const looksAfter = 5 * time.Second

// mostRight is how often who names what is youngest, or was written last, or is left alone, may be right. Who reads of all
// scaling and leaves those services out may be so more often by a little: where all services are released, one of eight
// or five is.
const (
	mostRight     = 0.10
	mostEventless = 0.11
)

// Whoever names what is youngest, what was written last, or what is left alone, is hardly ever right. This is by the plan
// alone, over the catalog; 'aiopslab audit' measures it.
func TestTracesOfThePlan(t *testing.T) {
	byName := map[string]*app.App{}
	for _, a := range everytest.Apps() {
		byName[a.Name] = a
	}
	const seeds = 300
	right, runs, chance := map[string]int{}, 0, 0.0
	for _, d := range localizations(t) {
		a := byName[d.App]
		parts, err := partsOf(a)
		if err != nil {
			t.Fatal(err)
		}
		injections := d.injections(t, a)
		for seed := range uint64(seeds) {
			runs++
			chance += 1 / float64(len(a.Services))
			for name, order := range tracesOf(a, parts, injections, seed) {
				if n := len(d.Answer.Components); len(order) >= n && d.names(order[len(order)-n:]) {
					right[name]++
				}
			}
		}
	}
	for _, name := range []string{"youngest-replicaset", "youngest-pod", "last-written", "untouched", "never scaled"} {
		share := float64(right[name]) / float64(runs)
		t.Logf("%-20s %4.1f %%, by chance %.1f", name, 100*share, 100*chance/float64(runs))
		most := mostRight
		if name == "never scaled" {
			most = mostEventless
		}
		if share > most || share < 0.02 { // What is never right can be left out, which is a clue as well.
			t.Errorf("%s is right in %.1f %% of all runs", name, 100*share)
		}
	}
}

// tracesOf are services by what is held against them, the most suspicious last.
func tracesOf(a *app.App, parts []*part, injections []Injection, seed uint64) map[string][]string {
	l := &Life{Env: &fault.Env{App: a}, Seed: seed, parts: parts}
	l.reach(injections)
	r := l.draw(1)
	r.Uint32() // the build
	var steps []step
	if slices.ContainsFunc(injections, func(i Injection) bool { return i.Reach.Whole }) {
		steps = plan(r, a, l.some(r), nil)
	} else {
		steps = plan(r, a, parts, injections)
	}
	made := map[string]int{} // when the last pod of a service was made
	var released []string
	for i, s := range steps {
		if s.part != nil && s.part.rolls {
			released = append(released, s.part.service)
			made[s.part.service] = i
		}
	}
	written, touched, now := slices.Clone(released), maps.Clone(made), maps.Clone(made)
	for i, s := range scalings(l, parts) {
		written = append(slices.DeleteFunc(written, func(n string) bool { return n == s.service }), s.service)
		now[s.service] = made[s.service] // A ReplicaSet gives up its youngest pod first.
		if s.up {
			touched[s.service], now[s.service] = len(steps)+i, len(steps)+i
		}
	}
	by := func(when map[string]int) []string {
		return slices.SortedFunc(slices.Values(released), func(a, b string) int { return cmp.Compare(when[a], when[b]) })
	}
	return map[string][]string{
		"youngest-replicaset": released, "youngest-pod": by(now), "last-written": written, "untouched": reversed(by(now)),
		"never scaled": reversed(by(touched)),
	}
}

func reversed(list []string) []string {
	slices.Reverse(list)
	return list
}

type scaling struct {
	service string
	up      bool
}

// scalings are how services are scaled until somebody looks.
func scalings(l *Life, parts []*part) (list []scaling) {
	known := map[string]int64{}
	for _, p := range parts {
		known[p.service] = 1
	}
	r := l.draw(2)
	s := &stir{Life: l, known: known}
	names, raised := s.choose(r), map[string]bool{}
	wait, at := stirEvery, stirEvery
	for ; at < looksAfter && len(names) > 0; at += wait {
		name := names[r.IntN(len(names))]
		raised[name] = !raised[name]
		list = append(list, scaling{name, raised[name]})
		wait = time.Duration(float64(wait) * stirGrowth)
	}
	return list
}
