package runbook

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is something that is wrong, and where, as one post tells another.
type Finding struct {
	Kind      string `json:"kind"` // such as "wrong-port"
	Component string `json:"component"`
	Evidence  string `json:"evidence"` // a clause that says what was seen
	// What a repair needs to know: the Service, volume or the like; the index of a Service's port; what a port should
	// be; where the pod runs.
	Object string `json:"object,omitempty"`
	Port   int    `json:"port,omitempty"`
	Value  int    `json:"value,omitempty"`
	Node   string `json:"node,omitempty"`
	// Over says that it has happened, and that it works again.
	Over bool `json:"over,omitempty"`
}

// kinds are the kinds of findings by name.
var kinds = map[string]kind{
	"volume-unbound": volumeUnbound, "unschedulable": unschedulable, "scaled-to-zero": scaledToZero,
	"wrong-port": wrongPort, "tls-required": tlsRequired, "login-refused": loginRefused, "changed": changed,
	"bad-image": badImage, "disk-failing": diskFailing, "kernel-failing": kernelFailing, "out-of-memory": outOfMemory,
	"killed": killed, "replaced": replaced, "network-failing": networkFailing, "cpu-starved": cpuStarved,
	"silent": silent, "crashing": crashing, "failing": failing, "slow": slow,
}

// names are the names of the kinds.
var names = func() map[kind]string {
	m := map[kind]string{}
	for name, k := range kinds {
		m[k] = name
	}
	return m
}()

func public(list []finding) (all []Finding) {
	for _, f := range list {
		all = append(all, Finding{names[f.kind], f.component, f.evidence, f.object, f.port, f.value, f.node, f.over})
	}
	return all
}

func (f Finding) private() (finding, bool) {
	k, ok := kinds[f.Kind]
	return finding{k, f.Component, f.Evidence, f.Object, f.Port, f.Value, f.Node, f.Over}, ok
}

// Certain reports whether a finding needs no further evidence.
func (f Finding) Certain() bool { return rank[kinds[f.Kind]] >= certain }

// Settled reports whether it does not go away by itself.
func (f Finding) Settled() bool { return rank[kinds[f.Kind]] >= settled }

// Remedy reports whether a runbook has a remedy for it.
func (f Finding) Remedy() bool {
	g, ok := f.private()
	return ok && !g.vague()
}

// Cause is what it means, as the answer to an analysis.
func (f Finding) Cause() any { return causes[kinds[f.Kind]] }

// Conclude says which findings of several posts are causes, the most certain first. Those of kinds that nobody knows
// do not count.
func Conclude(list []Finding, dependsOn func(a, b string) bool) []Finding {
	var known []finding
	for _, f := range list {
		if g, ok := f.private(); ok {
			known = append(known, g)
		}
	}
	return public(conclude(known, dependsOn))
}

// Over reports whether something was found, and all of it has only happened: nothing is wrong any more.
func Over(list []Finding) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(f Finding) bool { return !f.Over })
}

// Sum says in one clause what the findings are.
func Sum(list []Finding) string {
	var clauses []string
	for _, f := range list {
		clauses = append(clauses, fmt.Sprintf("%s is at fault: %s", f.Component, f.Evidence))
	}
	return strings.Join(clauses, "; ")
}
