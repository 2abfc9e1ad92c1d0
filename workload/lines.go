package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

var (
	operationText = regexp.MustCompile(`^operation (?:("(?:[^"\\]|\\.)*")|(\d+))(.*)$`)
	thenText      = regexp.MustCompile(`^then (\d+)$`)
	firstWord     = regexp.MustCompile(`^(?:give )?([a-z_]+)`)
)

// located gives the problems of a document the lines of what they speak of. Each begins with where it is:
// `operation "a": then 1: path ...`.
func located(file string, places strict.Places, m *Mix, texts []string) error {
	all := &strict.Problems{File: file}
	for _, t := range texts {
		all.Add(places.Line(pathOf(t, m)...), "%s", t)
	}
	return all.Err()
}

// pathOf is the path to what a problem speaks of.
func pathOf(text string, m *Mix) (path []any) {
	if o := operationText.FindStringSubmatch(text); o != nil && m != nil {
		at := 0
		if n, err := strconv.Atoi(o[2]); err == nil {
			at = n - 1
		}
		for i := range slices.Backward(m.Operations) {
			if fmt.Sprintf("%q", m.Operations[i].Name) == o[1] {
				at = i
				if strings.HasSuffix(text, " is there twice") { // The last is one too many.
					break
				}
			}
		}
		path, text = append(path, "operations", at), strings.TrimPrefix(o[3], ": ")
	}
	for _, part := range strings.Split(text, ": ") {
		if n := thenText.FindStringSubmatch(part); n != nil {
			i, _ := strconv.Atoi(n[1])
			path = append(path, "then", i-1)
		} else if w := firstWord.FindStringSubmatch(part); w != nil {
			path = append(path, w[1])
		}
	}
	return path
}
