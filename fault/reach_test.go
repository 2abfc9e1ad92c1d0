package fault

import (
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app/hotel"
)

// A service whose pods share what is wrong, or are what is wrong, is not given one more.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		kind, target, params string
		want                 []string
	}{
		{kind: "scale_pods_to_zero", target: "geo", want: []string{"geo"}},
		{kind: "assign_to_non_existent_node", target: "geo", want: []string{"geo"}},
		{kind: "cpu_stress", target: "geo", want: []string{"geo"}},
		{kind: "memory_stress", target: "geo", want: []string{"geo"}},
		{kind: "network_bandwidth", target: "geo", want: []string{"geo"}},
		{kind: "pod_kill", target: "geo", want: []string{"geo"}},
		{kind: "container_kill", target: "geo", want: []string{"geo"}},
		{kind: "network_delay", target: "geo", params: "{node: true}", want: []string{"geo"}},
		{kind: "network_delay", target: "geo", params: "{ramp: 1m}", want: []string{"geo"}},
		{kind: "redeploy_without_pv", target: "mongodb-geo", want: []string{"mongodb-geo", "geo"}},
		{kind: "network_delay", target: "geo"},
		{kind: "network_loss", target: "geo", params: "{every: 20s, for: 8s}"},
		{kind: "network_partition", target: "geo"},
		{kind: "pod_failure", target: "geo"},
		{kind: "kernel_fault", target: "geo"},
		{kind: "wrong_bin_usage", target: "profile", params: "{binary: geo}"},
		{kind: "misconfig_app", target: "geo"},
		{kind: "misconfig_k8s", target: "memcached-profile"},
		{kind: "revoke_auth", target: "mongodb-geo"},
		{kind: "storage_user_unregistered", target: "mongodb-geo"},
	} {
		f := bind(t, c.kind, hotel.App(), c.target, c.params)
		if got := ReachOf(f); !got.Known || !slices.Equal(got.Alone, c.want) {
			t.Errorf("%s of %s %s: %v must be alone, want %v", c.kind, c.target, c.params, got.Alone, c.want)
		}
	}
}
