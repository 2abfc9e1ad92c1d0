package fault

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/cloud"
)

// alone is a cloud without any power; guesthouse is one that others use as well.
type (
	alone      struct{ cloud.Cloud }
	guesthouse struct{ cloud.Cloud }
	chaotic    struct {
		guesthouse
		cloud.Chaos
	}
)

func (guesthouse) Tenancy() cloud.Tenancy { return cloud.Tenancy{Namespaces: []string{"shop"}} }

// What a cluster cannot have is known before anything is made there, and why.
func TestLacks(t *testing.T) {
	for name, tt := range map[string]struct {
		c    cloud.Cloud
		want string // in the reason; empty for none
	}{
		"network_loss":        {alone{}, "no means"},
		"pod_kill":            {guesthouse{}, "no means"},
		"network_delay":       {chaotic{}, ""},
		"redeploy_without_pv": {guesthouse{}, "not the lab's alone"},
		"scale_pods_to_zero":  {guesthouse{}, ""},
		"revoke_auth":         {guesthouse{}, ""},
	} {
		found := false
		for _, k := range Kinds() {
			if k.Name != name {
				continue
			}
			found = true
			if got := k.Lacks(tt.c); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%s: %q", name, got)
			}
		}
		if !found {
			t.Errorf("there is no %s", name)
		}
	}
	for _, k := range Kinds() {
		if k.Name == "redeploy_without_pv" && k.Lacks(alone{}) != "" {
			t.Error("redeploy_without_pv cannot be had in a cluster of one's own")
		}
	}
}
