package noise

import (
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app/tidb"
)

// A custom resource of an application is released with the rest, or a change of it would be the only one. What an
// operator makes of it is not for a release to replace.
func TestCustomResource(t *testing.T) {
	parts, err := partsOf(tidb.App())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parts, func(p *part) bool { return p.has([]string{"TidbCluster/basic"}) })
	if i < 0 || parts[i].rolls || parts[i].deployment != nil {
		t.Errorf("%+v", parts)
	}
	for _, p := range parts {
		if p.rolls != (p.service == "bank") {
			t.Errorf("pods of %s are replaced: %v", p.service, p.rolls)
		}
	}
}
