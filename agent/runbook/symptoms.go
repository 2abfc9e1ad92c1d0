package runbook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// stores are the images of servers that keep data for others.
var stores = regexp.MustCompile(
	`(?i)(mongo|redis|valkey|memcached|postgres|mysql|mariadb|cassandra|etcd|elasticsearch|opensearch)`)

// isStore reports whether a component keeps data for others.
func (s *system) isStore(component string) bool {
	d, ok := s.deployment(component)
	if !ok {
		return false
	}
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c v1.Container) bool {
		image := c.Image[strings.LastIndex(c.Image, "/")+1:]
		return stores.MatchString(image)
	})
}

// spoken finds causes that logs name.
func (s *system) spoken() (list []finding) {
	for c := range s.logs {
		for _, rule := range []struct {
			kind  kind
			what  *regexp.Regexp
			store bool // it is the store that the line is about, not its client
		}{
			{loginRefused, speaksOfLogin, true},
			{tlsRequired, speaksOfTLS, true},
			{diskFailing, speaksOfDisk, true},
			{kernelFailing, speaksOfKern, false},
		} {
			line, ok := s.said(c, rule.what)
			if !ok {
				continue
			}
			at := c
			if rule.store && !s.isStore(c) {
				at = s.storeOf(c, line, rule.what)
			}
			list = append(list, finding{
				kind: rule.kind, component: at,
				evidence: fmt.Sprintf("the log of %s says %s", c, excerpt(line, rule.what)), node: s.nodeOf(at),
			})
		}
	}
	slices.SortFunc(list, func(a, b finding) int {
		return strings.Compare(a.component+a.evidence, b.component+b.evidence)
	})
	return list
}

// storeOf is the store that a client's line is about: the one it names, or the one that says the
// same, or the only one it calls; or else the client itself.
func (s *system) storeOf(client, line string, what *regexp.Regexp) string {
	for _, n := range s.named(client, line) {
		if s.isStore(n) {
			return n
		}
	}
	var called []string
	for _, n := range s.calls[client] {
		if !s.isStore(n) {
			continue
		}
		if _, ok := s.said(n, what); ok {
			return n
		}
		called = append(called, n)
	}
	if len(called) == 1 {
		return called[0]
	}
	return client
}

// resources finds pods that have no CPU or memory left.
func (s *system) resources() (list []finding) {
	for _, m := range s.samples {
		c := s.component(m.who)
		switch m.name {
		case cpuThrottled:
			list = append(list, finding{
				kind: cpuStarved, component: c, node: s.nodeOf(c),
				evidence: fmt.Sprintf("its container is throttled in %.0f %% of its CPU periods", 100*m.value),
			})
		case memoryUsed:
			list = append(list, finding{
				kind: outOfMemory, component: c, node: s.nodeOf(c),
				evidence: fmt.Sprintf("its container uses %.0f %% of its memory limit", 100*m.value),
			})
		}
	}
	return list
}

// requests finds services whose requests fail or take long.
func (s *system) requests() (list []finding) {
	for _, m := range s.samples {
		c, _ := s.owner(m.who)
		if c == "" {
			c = m.who
		}
		switch m.name {
		case httpErrors, rpcErrors:
			list = append(list, finding{
				kind: failing, component: c,
				evidence: fmt.Sprintf("%.0f %% of the requests to it fail", 100*m.value),
			})
		case storeErrors:
			list = append(list, finding{
				kind: failing, component: c,
				evidence: fmt.Sprintf("%.0f %% of its requests to stores fail", 100*m.value),
			})
		case httpLatency, rpcLatency:
			list = append(list, finding{
				kind: slow, component: c,
				evidence: fmt.Sprintf("one in twenty requests to it takes more than %.1f s", m.value),
			})
		case storeLatency:
			list = append(list, finding{
				kind: slow, component: c,
				evidence: fmt.Sprintf("one in twenty of its requests to stores takes more than %.1f s", m.value),
			})
		}
	}
	return list
}
