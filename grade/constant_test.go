package grade_test

import (
	"math"
	"testing"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// Who names one service, whatever the problem, is right no more often than who draws one: not so often that less
// than 5 % of those who draw would be.
func TestNoConstantPlace(t *testing.T) {
	var asked []*problem.Problem
	names := map[string]float64{} // with the chance that one of its application is drawn
	for _, p := range problemtest.Library(t).Problems {
		if p.Task != problem.Localization || !p.Faulty() {
			continue
		}
		asked = append(asked, p)
		for _, s := range p.App.Services {
			names[s.Name] = 1 / float64(len(p.App.Services))
		}
	}
	for name, chance := range names {
		hits := 0
		for _, p := range asked {
			if grade.Localization([]any{name}, p.Answer().Components).Success() {
				hits++
			}
		}
		if luck := atLeast(hits, len(asked), chance); luck < 0.05 {
			t.Errorf("%s is right in %d of %d localizations; who draws one is with a chance of %.3f", name, hits, len(asked), luck)
		}
	}
}

// atLeast is the chance that k of n draws succeed, or more, each with a chance p.
func atLeast(k, n int, p float64) float64 {
	less, term := 0.0, math.Pow(1-p, float64(n))
	for i := range k {
		less += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return 1 - less
}
