// Package grade judges what an agent submitted. Judging an answer is a pure function of the
// submission and the problem's solution; the keys of a [Result] are AIOpsLab's, with success for
// every task.
//
// Odd submissions get a verdict, never a crash: what an agent may send is whatever its JSON or its
// text could express.
package grade

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// Result is what a run scored, by the names reports use.
type Result map[string]any

// Success reports whether the task was solved.
func (r Result) Success() bool { return r["success"] == true }

// TimeKeys are the names under which results have the time that a task took. They are AIOpsLab's, but for the last.
var TimeKeys = map[problem.Task]string{
	problem.Detection: "TTD", problem.Localization: "TTL", problem.Analysis: "TTA", problem.Mitigation: "TTM",
	problem.Operation: "TTO",
}

// Times are the times that results have, by those names.
func (r Result) Times() map[string]float64 {
	times := map[string]float64{}
	for _, key := range TimeKeys {
		if took, ok := r[key].(float64); ok {
			times[key] = took
		}
	}
	return times
}

// Took is how long a run took: it has one of the times, or is an incident, which took as long as the last of them. It
// is nil if there is none.
func (r Result) Took() *float64 {
	times := slices.Collect(maps.Values(r.Times()))
	if len(times) == 0 {
		return nil
	}
	last := slices.Max(times)
	return &last
}

// Detection judges the answer to whether there is an anomaly: "Yes" or "No".
func Detection(submitted any, expected string) Result {
	answer, ok := unwrap(submitted).(string)
	if b, isBool := unwrap(submitted).(bool); isBool {
		answer, ok = map[bool]string{true: "yes", false: "no"}[b], true
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	switch {
	case !ok || answer != "yes" && answer != "no":
		return Result{"Detection Accuracy": "Invalid Format", "success": false}
	case answer == strings.ToLower(expected):
		return Result{"Detection Accuracy": "Correct", "success": true}
	}
	return Result{"Detection Accuracy": "Incorrect", "success": false}
}

// unwrap takes the one element of a list: agents submit ["Yes"] for "Yes".
func unwrap(v any) any {
	if l, ok := v.([]any); ok && len(l) == 1 {
		return l[0]
	}
	return v
}

// podSuffix is what a Deployment's controller and a ReplicaSet's add to a name.
var podSuffix = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?$`)

// means reports whether a name means the component: its own name or an alias, in any case, with or
// without a kind in front ("deployment/geo"), or the name of one of its pods.
func means(name string, c problem.Component) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	for _, n := range append([]string{c.Name}, c.Aliases...) {
		n = strings.ToLower(n)
		if name == n || strings.HasPrefix(name, n+"-") && podSuffix.MatchString(name[len(n):]) &&
			podSuffix.ReplaceAllString(name, "") == n {
			return true
		}
	}
	return false
}

// Localization judges a list of faulty components, the most likely first. With nothing expected the
// list must be empty.
//
// "Localization Accuracy" is 100 for exactly the expected components, the share of right ones among
// those submitted if all expected are there, and 0 otherwise. top_1 and top_3 say whether one of
// the expected is first, or among the first three.
func Localization(submitted any, expected []problem.Component) Result {
	names, ok := stringList(submitted)
	if !ok {
		return Result{
			"Localization Accuracy": 0.0, "success": false, "is_subset": false, "top_1": false,
			"top_3": false, "invalid": invalid("a list of names", submitted),
		}
	}
	found := make([]bool, len(expected))
	right := make([]bool, 0, len(names)) // by submitted component, each counted once
	for _, n := range names {
		i := slices.IndexFunc(expected, func(c problem.Component) bool { return means(n, c) })
		if i >= 0 && found[i] {
			continue // The same component under another name.
		}
		if i >= 0 {
			found[i] = true
		}
		right = append(right, i >= 0)
	}
	all := !slices.Contains(found, false)
	exact := all && !slices.Contains(right, false)
	accuracy := 0.0
	switch {
	case exact:
		accuracy = 100
	case all && len(expected) > 0:
		accuracy = 100 * float64(len(expected)) / float64(len(right))
	}
	return Result{
		"Localization Accuracy": accuracy, "success": exact, "is_subset": all && len(expected) > 0,
		"top_1": exact || slices.Contains(right[:min(1, len(right))], true),
		"top_3": exact || slices.Contains(right[:min(3, len(right))], true),
	}
}

// stringList reads a list of strings, or one string, which may have commas. None is an empty list.
func stringList(v any) ([]string, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return fields(v), true
	case map[string]any: // {"geo": "reason"}: the keys.
		var names []string
		for k := range v {
			names = append(names, k)
		}
		slices.Sort(names)
		return names, true
	case []any:
		var names []string
		for _, e := range v {
			s, ok := unwrap(e).(string)
			if !ok {
				return nil, false
			}
			names = append(names, fields(s)...)
		}
		return names, true
	}
	return nil, false
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

// Analysis judges a root cause: {"system_level": ..., "fault_type": ...}. Any of the expected causes
// is right. With nothing wrong, none is expected, and None or an empty dict is the answer.
func Analysis(submitted any, expected []fault.Cause) Result {
	submitted = unwrap(submitted)
	dict, ok := submitted.(map[string]any)
	if len(expected) == 0 {
		healthy := submitted == nil || ok && len(dict) == 0
		return Result{"system_level_correct": healthy, "fault_type_correct": healthy, "success": healthy}
	}
	if !ok {
		return Result{
			"system_level_correct": false, "fault_type_correct": false, "success": false,
			"invalid": invalid("a dict with system_level and fault_type", submitted),
		}
	}
	same := func(key, want string) bool {
		got, ok := unwrap(dict[key]).(string)
		return ok && strings.EqualFold(strings.TrimSpace(got), want)
	}
	var level, kind, both bool
	for _, c := range expected {
		l, k := same("system_level", c.SystemLevel), same("fault_type", c.FaultType)
		level, kind, both = level || l, kind || k, both || l && k
	}
	return Result{"system_level_correct": level, "fault_type_correct": kind, "success": both}
}

func invalid(want string, got any) string { return fmt.Sprintf("%s is expected, not %T", want, got) }
