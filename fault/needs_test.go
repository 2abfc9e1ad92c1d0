package fault

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/cloud"
)

// alone is a cloud without any power; guesthouse is one that others use as well. Chaotic can disturb pods, choosy only
// kill them.
type (
	alone      struct{ cloud.Cloud }
	guesthouse struct{ cloud.Cloud }
	chaotic    struct {
		guesthouse
		cloud.Chaos
	}
	choosy struct{ chaotic }
	// stern and generous know what else they let the lab have.
	stern    struct{ guesthouse }
	generous struct{ guesthouse }
)

func (stern) Missing(f cloud.Facility) string {
	return map[cloud.Facility]string{cloud.Policies: "no policies", cloud.Volumes: "no volumes"}[f]
}

func (generous) Missing(cloud.Facility) string { return "" }

func (guesthouse) Tenancy() cloud.Tenancy { return cloud.Tenancy{Namespaces: []string{"shop"}} }

func (choosy) Refuses(d cloud.Disturbance) string {
	switch {
	case d.Pod != nil && d.Pod.Action == cloud.PodKill:
		return ""
	case d.Network != nil && d.Network.Direction == cloud.From:
		return "not what they receive"
	}
	return "only killing"
}

// disturber is a fault of somebody else's.
type disturber struct{ Fault }

// What a cluster cannot have is known before anything is made there, and why.
func TestLacks(t *testing.T) {
	loss := &disturbed{what: cloud.Disturbance{Network: &cloud.NetworkChaos{Loss: 1, Direction: cloud.From}}}
	kill := &disturbed{what: cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodKill}}}
	for name, tt := range map[string]struct {
		kind string
		c    cloud.Cloud
		f    Fault
		want string // in the reason; empty for none
	}{
		"no chaos":               {"network_loss", alone{}, loss, "network_loss disturbs pods: this cluster has no means"},
		"no chaos for guests":    {"pod_kill", guesthouse{}, kill, "no means"},
		"of somebody else's":     {"pod_kill", guesthouse{}, disturber{}, "no means"},
		"all can be had":         {"network_loss", chaotic{}, loss, ""},
		"what can be had":        {"pod_kill", choosy{}, kill, ""},
		"what cannot":            {"network_loss", choosy{}, loss, "not what they receive"},
		"not known what it is":   {"network_loss", choosy{}, disturber{}, ""},
		"a guest who cannot ask": {"redeploy_without_pv", guesthouse{}, nil, "not the lab's alone"},
		"volumes of others":      {"redeploy_without_pv", stern{}, nil, "redeploy_without_pv changes volumes: no volumes"},
		"no policies":            {"hostile_client", stern{}, nil, "takes NetworkPolicies to mend: no policies"},
		"all is lent":            {"redeploy_without_pv", generous{}, nil, ""},
		"policies":               {"hostile_client", generous{}, nil, ""},
		"a cluster of one's own": {"redeploy_without_pv", alone{}, nil, ""},
		"its own network":        {"hostile_client", alone{}, nil, ""},
		"a manifest does it":     {"scale_pods_to_zero", guesthouse{}, nil, ""},
		"a command does it":      {"revoke_auth", guesthouse{}, nil, ""},
	} {
		k, err := Find(Kinds(), tt.kind)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Lacks(tt.c, tt.f); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
