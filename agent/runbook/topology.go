package runbook

import (
	"regexp"
	"strings"
)

var word = regexp.MustCompile(`[a-zA-Z0-9][a-zA-Z0-9.-]*`)

// readTopology notes who calls whom: from the table of services, whose last column is what each
// depends on, and from lines of the form "a -> b".
func (s *system) readTopology(text string) {
	for line := range strings.Lines(text) {
		from, to, ok := strings.Cut(line, " -> ")
		if f := columns.Split(strings.TrimSpace(line), -1); len(f) == 5 && strings.Contains(f[2], "/") {
			from, to, ok = f[0], f[4], true
		}
		if !ok {
			continue
		}
		a, known := s.owner(strings.TrimSpace(from))
		if !known {
			continue
		}
		for _, w := range word.FindAllString(to, -1) {
			if b, ok := s.owner(w); ok {
				s.called(a, b)
			}
		}
	}
}
