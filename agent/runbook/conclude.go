package runbook

import (
	"cmp"
	"slices"
)

// conclude says which findings are causes, the most certain first:
//   - of what was found of one component, only what explains most;
//   - what is wrong with somebody who depends on another who has a cause is a consequence;
//   - what was changed or refused is known for certain, so all of that counts. What is only seen from
//     outside counts if there is nothing certain, and then only the strongest, at whoever lies deepest.
func conclude(findings []finding, dependsOn func(a, b string) bool) []finding {
	var best []finding
	for _, f := range findings {
		i := slices.IndexFunc(best, func(b finding) bool { return b.component == f.component })
		switch {
		case i < 0:
			best = append(best, f)
		case f.rank() > best[i].rank():
			best[i] = f
		}
	}
	var causes []finding
	for _, f := range best {
		explained := slices.ContainsFunc(best, func(g finding) bool {
			return g.component != f.component && g.rank() >= f.rank() &&
				(g.rank() >= suspicious || f.rank() < suspicious) &&
				f.rank() < certain && dependsOn(f.component, g.component) && !dependsOn(g.component, f.component)
		})
		if !explained {
			causes = append(causes, f)
		}
	}
	slices.SortStableFunc(causes, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()),
			cmp.Compare(depth(causes, b, dependsOn), depth(causes, a, dependsOn)))
	})
	if len(causes) == 0 {
		return nil
	}
	sure := slices.IndexFunc(causes, func(f finding) bool { return f.rank() < certain })
	switch sure {
	case 0:
		return causes[:1]
	case -1:
		return causes
	}
	return causes[:sure]
}

// depth is how many of the others depend on a finding's component.
func depth(all []finding, f finding, dependsOn func(a, b string) bool) (n int) {
	for _, g := range all {
		if g.component != f.component && dependsOn(g.component, f.component) {
			n++
		}
	}
	return n
}
