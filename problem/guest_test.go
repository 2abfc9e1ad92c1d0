package problem_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// Beside other runs all namespaces of a problem have other names, and nothing that is told, done or proposed has the
// usual ones.
func TestNamespacesOfGuests(t *testing.T) {
	p, err := problemtest.Library(t).Find("autonomic-self-protection-hostile-client-1")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Namespaces(); !slices.Equal(got, []string{"partners"}) {
		t.Fatalf("it has the namespaces %q", got)
	}
	for suffix, want := range map[string]string{"": "partners", "-2": "partners-2"} {
		moved := p.In(&cloud.Tenancy{Run: "1", Suffix: suffix})
		if got := moved.Namespaces(); !slices.Equal(got, []string{"partners"}) {
			t.Errorf("%q: to be made are %q, by their usual names", suffix, got)
		}
		if ask := moved.Goal().Ask; strings.Count(ask, "namespace "+want+" ") != 2 || strings.Count(ask, "partners") != 2 {
			t.Errorf("%q: it is asked: %s", suffix, ask)
		}
		faults, err := moved.Bind()
		if err != nil {
			t.Fatal(err)
		}
		if got := faults[0].(fault.Spaced).Namespaces(); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: the fault is in %q", suffix, got)
		}
		fix, err := moved.Solution()
		if err != nil || !strings.Contains(strings.Join(fix, "\n"), "-n "+want+" ") {
			t.Errorf("%q: the solution is %q, %v", suffix, fix, err)
		}
	}
	if ask := p.Goal().Ask; strings.Contains(ask, "partners-") {
		t.Errorf("the problem itself was changed: %s", ask)
	}
}
