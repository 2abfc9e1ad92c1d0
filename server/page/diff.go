package page

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"
)

// line is one of the difference between two texts: Kind is "same", "add", "del" or "gap".
type line struct{ Kind, Text string }

const (
	around   = 2    // lines that are shown before and behind a change
	maxLines = 3000 // of a text; what is longer is compared no more
)

// objectDiff is how an object was changed, as YAML. What the API server keeps for itself is left out, and so are the
// values of Secrets.
func objectDiff(before, after json.RawMessage) []line {
	return diff(objectLines(before), objectLines(after))
}

func objectLines(raw json.RawMessage) []string {
	var object map[string]any
	if len(raw) == 0 || json.Unmarshal(raw, &object) != nil || object == nil {
		return nil
	}
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		for _, key := range []string{"resourceVersion", "generation", "uid", "managedFields", "creationTimestamp"} {
			delete(meta, key)
		}
	}
	hideSecrets(object)
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(visible(string(text)), "\n"), "\n")
}

// hideSecrets puts a short digest in the place of the values of a Secret, so that it is seen which were changed.
func hideSecrets(object map[string]any) {
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			if o, ok := item.(map[string]any); ok {
				if o["kind"] == nil && object["kind"] == "SecretList" {
					o["kind"] = "Secret"
				}
				hideSecrets(o)
			}
		}
	}
	if object["kind"] != "Secret" {
		return
	}
	for _, key := range []string{"data", "stringData"} {
		values, _ := object[key].(map[string]any)
		for name, v := range values {
			text, _ := v.(string)
			sum := sha256.Sum256([]byte(text))
			values[name] = "(hidden, " + hex.EncodeToString(sum[:3]) + ")"
		}
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		if notes, ok := meta["annotations"].(map[string]any); ok {
			delete(notes, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
}

// diff is the difference between two texts, line by line, with a few lines around each change.
func diff(a, b []string) []line {
	a, b = a[:min(len(a), maxLines)], b[:min(len(b), maxLines)]
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var all []line
	for _, text := range a[:head] {
		all = append(all, line{"same", text})
	}
	all = append(all, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, text := range a[len(a)-tail:] {
		all = append(all, line{"same", text})
	}
	return withoutFar(all)
}

// middle compares by the longest common subsequence. Where that would take too long, all of one is replaced.
func middle(a, b []string) (list []line) {
	if len(a)*len(b) > 4_000_000 {
		for _, text := range a {
			list = append(list, line{"del", text})
		}
		for _, text := range b {
			list = append(list, line{"add", text})
		}
		return list
	}
	longest := make([][]int32, len(a)+1) // of what is behind i in a, and behind j in b
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			list = append(list, line{"same", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			list = append(list, line{"del", a[i]})
			i++
		default:
			list = append(list, line{"add", b[j]})
			j++
		}
	}
	return list
}

// withoutFar leaves out what is far from a change.
func withoutFar(all []line) (list []line) {
	near := make([]bool, len(all))
	for i, l := range all {
		if l.Kind == "same" {
			continue
		}
		for j := max(0, i-around); j <= min(len(all)-1, i+around); j++ {
			near[j] = true
		}
	}
	for i, l := range all {
		switch {
		case near[i]:
			list = append(list, l)
		case i > 0 && near[i-1]:
			list = append(list, line{"gap", "…"})
		}
	}
	return list
}

// Sign is what stands before a line.
func (l line) Sign() string {
	return map[string]string{"add": "+ ", "del": "- ", "same": "  ", "gap": "  "}[l.Kind]
}
