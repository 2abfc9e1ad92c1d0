package change

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// spec is the specification of a template's pods.
func spec(template map[string]any) map[string]any { return within(template, "spec") }

// first is the first container of a template. There is always one: the API server sees to that.
func first(template map[string]any) map[string]any {
	list, _ := spec(template)["containers"].([]any)
	if len(list) == 0 {
		return map[string]any{}
	}
	c, _ := list[0].(map[string]any)
	return c
}

// within is a map in a map, made if it is not there.
func within(m map[string]any, key string) map[string]any {
	in, ok := m[key].(map[string]any)
	if !ok {
		in = map[string]any{}
		m[key] = in
	}
	return in
}

// toggle gives a map a value, or takes it out if it is the value that it has. A map that is empty then goes as well.
func toggle(m map[string]any, of, key string, value any) bool {
	in := within(m, of)
	if in[key] == value {
		delete(in, key)
	} else {
		in[key] = value
	}
	if len(in) == 0 {
		delete(m, of)
	}
	return true
}

// settings are variables that no program of the lab reads.
var settings = map[string][]string{
	"FEATURE_FLAGS": {"legacy-cache", "beta-rates", "dark-mode", "none"},
	"RELEASE_RING":  {"early", "stable", "canary"},
	"BUILD_HOST":    {"ci-2", "ci-5", "ci-7", "ci-9"},
	"LOG_LEVEL":     {"info", "INFO", "warn"},
	"TEAM_CONTACT":  {"core", "platform", "growth"},
	"CACHE_WARMUP":  {"true", "false", "lazy"},
}

// addVariable sets a variable that nobody reads, to another value if it is there.
func addVariable(_ *World, r *rand.Rand, template map[string]any) bool {
	c := first(template)
	name := pick(r, slices.Sorted(maps.Keys(settings)))
	for _, v := range variables(c) {
		if v["name"] == name {
			v["value"] = other(r, settings[name], fmt.Sprint(v["value"]))
			return true
		}
	}
	all, _ := c["env"].([]any)
	c["env"] = append(slices.Clone(all), map[string]any{"name": name, "value": pick(r, settings[name])})
	return true
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// other is one of a list that is not this one.
func other(r *rand.Rand, list []string, than string) string {
	return pick(r, slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == than }))
}

// spellCommand writes the program that is run with its path, or without.
func spellCommand(w *World, _ *rand.Rand, template map[string]any) bool {
	c := first(template)
	command, _ := c["command"].([]any)
	image, _ := c["image"].(string)
	if w.Program == nil || len(command) == 0 {
		return false
	}
	name, _ := command[0].(string)
	base := name[strings.LastIndexByte(name, '/')+1:]
	switch file := w.Program(image, base); {
	case file == "":
		return false
	case file == name:
		name = base
	case base == name:
		name = file
	default:
		return false
	}
	c["command"] = append([]any{name}, command[1:]...)
	return true
}

// selectNodes asks for nodes of the kind that all are of.
func selectNodes(_ *World, _ *rand.Rand, template map[string]any) bool {
	return toggle(spec(template), "nodeSelector", "kubernetes.io/os", "linux")
}

// setRequest has a container ask for some more or less of the CPU or of memory, and for no more than it may have.
func setRequest(w *World, r *rand.Rand, template map[string]any) bool {
	low, high := 60, 120
	if w.Tight {
		high = 96
	}
	return scale(r, first(template), "requests", low, high)
}

// setLimit lets a container have some more of the CPU or of memory than it needs.
func setLimit(w *World, r *rand.Rand, template map[string]any) bool {
	return !w.Tight && scale(r, first(template), "limits", 104, 124)
}

// scale sets the amount of one of the resources that a container has to a percentage of what it was.
func scale(r *rand.Rand, container map[string]any, of string, low, high int) bool {
	resources, _ := container["resources"].(map[string]any)
	amounts, _ := resources[of].(map[string]any)
	var names []string
	for _, name := range []string{"cpu", "memory"} {
		if amounts[name] != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false
	}
	name := pick(r, names)
	was, err := resource.ParseQuantity(fmt.Sprint(amounts[name]))
	if err != nil || was.IsZero() {
		return false
	}
	percent := low + 4*r.IntN(1+(high-low)/4)
	if percent == 100 {
		percent = 96
	}
	is := resource.NewQuantity(was.Value()*int64(percent)/100>>20<<20, resource.BinarySI)
	if name == "cpu" {
		is = resource.NewMilliQuantity((was.MilliValue()*int64(percent)+99)/100, resource.DecimalSI)
	}
	if limits, ok := resources["limits"].(map[string]any); ok && limits[name] != nil && of == "requests" {
		if limit, err := resource.ParseQuantity(fmt.Sprint(limits[name])); err == nil && is.Cmp(limit) > 0 {
			is = &limit
		}
	}
	if is.Cmp(was) == 0 || is.IsZero() {
		return false
	}
	amounts[name] = is.String()
	return true
}

// setProbe has a probe wait for longer, or try once more, before it gives up.
func setProbe(_ *World, r *rand.Rand, template map[string]any) bool {
	c := first(template)
	var probes []map[string]any
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if p, ok := c[name].(map[string]any); ok {
			probes = append(probes, p)
		}
	}
	if len(probes) == 0 {
		return false
	}
	p := probes[r.IntN(len(probes))]
	if r.IntN(2) > 0 {
		p["timeoutSeconds"] = whole(p["timeoutSeconds"], 1) + 1
	} else {
		p["failureThreshold"] = whole(p["failureThreshold"], 3) + 1
	}
	return true
}

// whole is a number of an object, or what it is if nobody says.
func whole(v any, unsaid int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return unsaid
}

// setGracePeriod gives pods longer to end.
func setGracePeriod(_ *World, r *rand.Rand, template map[string]any) bool {
	s := spec(template)
	s["terminationGracePeriodSeconds"] = whole(s["terminationGracePeriodSeconds"], 30) + 5*int64(1+r.IntN(6))
	return true
}

// addAnnotation notes something that only people read.
func addAnnotation(_ *World, r *rand.Rand, template map[string]any) bool {
	names := []string{"app.kubernetes.io/commit", "app.kubernetes.io/ticket", "app.kubernetes.io/pipeline"}
	within(within(template, "metadata"), "annotations")[pick(r, names)] = fmt.Sprintf("%07x", r.Uint32()>>4)
	return true
}

// addAffinity would rather have pods on nodes of the kind that all are of.
func addAffinity(_ *World, r *rand.Rand, template map[string]any) bool {
	s := spec(template)
	if _, ok := s["affinity"]; ok {
		return false
	}
	s["affinity"] = map[string]any{"nodeAffinity": map[string]any{
		"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"weight": int64(10 + 10*r.IntN(9)), "preference": map[string]any{"matchExpressions": []any{map[string]any{
				"key": "kubernetes.io/os", "operator": "In", "values": []any{"linux"},
			}}},
		}},
	}}
	return true
}

// addToleration tolerates what no node has.
func addToleration(_ *World, r *rand.Rand, template map[string]any) bool {
	s := spec(template)
	all, _ := s["tolerations"].([]any)
	s["tolerations"] = append(slices.Clone(all), map[string]any{
		"key": "dedicated", "operator": "Equal", "value": fmt.Sprintf("batch-%d", r.IntN(1000)), "effect": "NoSchedule",
	})
	return true
}

// addGroup gives the programs of a pod one more group, which no file is of.
func addGroup(_ *World, r *rand.Rand, template map[string]any) bool {
	c := within(spec(template), "securityContext")
	all, _ := c["supplementalGroups"].([]any)
	c["supplementalGroups"] = append(slices.Clone(all), int64(20000+r.IntN(10000)))
	return true
}
