package change

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// address is what has a host in it, with what is before and after it: "cart:8080", "amqp://user:word@rabbitmq:5672/".
var address = regexp.MustCompile(`^([a-z+]+://(?:[^@/]*@)?)?([a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:\d+)?(/.*)?$`)

// own is in the name of a setting that is about where a program itself is found.
var own = regexp.MustCompile(`(?i)listen|advertise|bind`)

// spellAddress spells the name of another service in a variable or an argument otherwise: with its namespace, or
// without.
func spellAddress(w *World, r *rand.Rand, template map[string]any) bool {
	suffix := "." + w.Namespace
	if r.IntN(2) > 0 {
		suffix += ".svc"
	}
	c := first(template)
	var spellings []func()
	for _, v := range variables(c) {
		value, _ := v["value"].(string)
		name, _ := v["name"].(string)
		if other := w.respell(value, suffix); other != "" && !own.MatchString(name) {
			spellings = append(spellings, func() { v["value"] = other })
		}
	}
	args, _ := c["args"].([]any)
	for i, a := range args {
		text, _ := a.(string)
		name, value, ok := strings.Cut(text, "=")
		if other := w.respell(value, suffix); ok && other != "" && !own.MatchString(name) {
			spellings = append(spellings, func() {
				changed := slices.Clone(args)
				changed[i] = name + "=" + other
				c["args"] = changed
			})
		}
	}
	if len(spellings) == 0 {
		return false
	}
	spellings[r.IntN(len(spellings))]()
	return true
}

// respell returns an address with a suffix for the name of its service, or without if it has one; "" if it is not the
// address of one of the namespace's Services. A name alone is none: it may be anything.
func (w *World) respell(value, suffix string) string {
	m := address.FindStringSubmatch(value)
	if m == nil || m[1] == "" && m[4] == "" {
		return ""
	}
	name, more, _ := strings.Cut(m[2], ".")
	if !slices.Contains(w.Services, name) {
		return ""
	}
	switch more {
	case "":
		return m[1] + name + suffix + m[4] + m[5]
	case w.Namespace, w.Namespace + ".svc":
		return m[1] + name + m[4] + m[5]
	}
	return ""
}

// variables are those of a container.
func variables(container map[string]any) (list []map[string]any) {
	all, _ := container["env"].([]any)
	for _, v := range all {
		if v, ok := v.(map[string]any); ok {
			list = append(list, v)
		}
	}
	return list
}
