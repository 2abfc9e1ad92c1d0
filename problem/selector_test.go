package problem_test

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

func TestSelect(t *testing.T) {
	l := problemtest.Library(t)
	all, err := l.Select(problem.Selector{})
	if err != nil || len(all) != len(l.Problems) {
		t.Errorf("nothing chooses %d of %d: %v", len(all), len(l.Problems), err)
	}
	list, err := l.Select(problem.Selector{Suite: "aiopslab", Task: problem.Detection, App: "hotel-reservation"})
	if err != nil || len(list) < 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, p := range list {
		if p.Origin == problem.Ours || p.Task != problem.Detection || p.App.Name != "hotel-reservation" {
			t.Errorf("%s is chosen", p.ID)
		}
	}
	for want, s := range map[string]problem.Selector{
		`there is no suite "hotels"; there are: all`:                        {Suite: "hotels"},
		`there is no task "detecton"; did you mean "detection"?`:            {Task: "detecton"},
		`there is no application "hotel-reservatin"; did you mean "hotel-r`: {App: "hotel-reservatin"},
		"no problem is of suite hotel, app social-network":                  {Suite: "hotel", App: "social-network"},
	} {
		if _, err := l.Select(s); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}
