package guard

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// kubeletAdvice says what of a kubelet is open.
const kubeletAdvice = "use the API's own resources; /metrics, /metrics/cadvisor, /metrics/resource, /stats/summary " +
	"and the services' logs, /logs/?query=kubelet, are open"

// nodePath reports whether a path of a kubelet is open, and how its answer is filtered. It may be read
// for metrics and for the logs of the node's services and no more, because the rest of it knows neither
// the agent's rights nor what is hidden: logs of containers are read through the API.
func (v *veil) nodePath(p string, query url.Values) (filter, bool) {
	switch p {
	case "healthz":
		return nil, true
	case "stats/summary":
		return v.summary, true
	case "metrics", "metrics/cadvisor", "metrics/resource", "metrics/probes":
		return v.metrics, true
	case "logs":
		isFile := func(s string) bool { return strings.ContainsAny(s, `/\`) }
		return v.serviceLog, !slices.ContainsFunc(query["query"], isFile)
	}
	return nil, false
}

// metrics removes the samples that name something hidden.
func (v *veil) metrics(_ string, doc []byte) ([]byte, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(doc) {
		hidden := slices.ContainsFunc(v.groups, func(g string) bool { return bytes.Contains(line, []byte(g)) }) ||
			slices.ContainsFunc(v.namespaces, func(ns string) bool { return bytes.Contains(line, []byte(`"`+ns+`"`)) })
		if !hidden {
			out.Write(line)
		}
	}
	return out.Bytes(), nil
}

// summary removes hidden pods from the statistics of a node.
func (v *veil) summary(_ string, doc []byte) ([]byte, error) {
	return edit(doc, func(name string, value []byte) ([]byte, error) {
		if name != "pods" {
			return value, nil
		}
		return sift(value, func(item []byte) bool {
			all, err := fields(item)
			if err != nil {
				return false
			}
			ref, err := fields(valueOr(all, "podRef", "{}"))
			return err == nil && !v.hides(
				object{resource: "pods", namespace: text(ref, "namespace"), name: text(ref, "name")})
		})
	})
}

// logged is how the log of a service names a pod: "namespace/name" or name_namespace(uid).
var logged = regexp.MustCompile(
	`"([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)"|([a-z0-9][a-z0-9.-]*)_([a-z0-9][a-z0-9-]*)\(`)

// serviceLog removes the lines that name something hidden.
func (v *veil) serviceLog(_ string, doc []byte) ([]byte, error) {
	known := map[[2]string]bool{}
	hides := func(namespace, name string) bool {
		k := [2]string{namespace, name}
		h, ok := known[k]
		if !ok {
			o := object{version: "v1", resource: "pods", namespace: namespace, name: name}
			if h = v.hides(o); !h && v.needsObject("", "pods") {
				o.raw = v.events.look(o)
				h = o.raw != nil && v.hides(o)
			}
			known[k] = h
		}
		return h
	}
	var out bytes.Buffer
	for line := range bytes.Lines(doc) {
		hidden := slices.ContainsFunc(slices.Concat(v.groups, v.images), func(s string) bool {
			return bytes.Contains(line, []byte(s))
		})
		for _, m := range logged.FindAllSubmatch(line, -1) {
			hidden = hidden || hides(string(m[1])+string(m[4]), string(m[2])+string(m[3]))
		}
		if !hidden {
			out.Write(line)
		}
	}
	return out.Bytes(), nil
}
