package kube

import (
	"context"
	"fmt"
	"strings"
)

// plugins are network plug-ins, by a part of the names of their pods, and whether NetworkPolicies have an effect with
// them. The first that fits counts: some come together.
var plugins = []struct {
	pod, name string
	enforces  bool
}{
	{"calico-node", "Calico", true},
	{"canal", "Canal", true},
	{"cilium", "Cilium", true},
	{"antrea", "Antrea", true},
	{"ovnkube", "OVN-Kubernetes", true},
	{"kube-router", "kube-router", true},
	{"weave-net", "Weave Net", true},
	{"azure-npm", "Azure NPM", true},
	{"kube-network-policies", "kube-network-policies", true},
	{"flannel", "Flannel", false},
}

// policy guesses whether NetworkPolicies have an effect, which only a try would tell.
func (e *examination) policy(context.Context) Finding {
	const check = "network-policy"
	for _, plugin := range plugins {
		for _, p := range e.pods {
			if !strings.Contains(p.Name, plugin.pod) {
				continue
			}
			guess := fmt.Sprintf("a guess from pod %s: %s ", p.Name, plugin.name)
			if plugin.enforces {
				return Finding{check, OK, guess + "enforces NetworkPolicies", ""}
			}
			return Finding{
				check, Warning, guess + "does not enforce NetworkPolicies",
				"Problems with a NetworkPolicy will not show their fault here.",
			}
		}
	}
	return Finding{
		check, Warning, "whether NetworkPolicies are enforced is not known: no pod is of a plug-in that the lab knows",
		"If a problem with a NetworkPolicy does not show its fault, they are not.",
	}
}
