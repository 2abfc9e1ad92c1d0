package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// summary is what became of a group's specs.
type summary struct {
	passed, skipped int
	failed          []string // names, sorted
	took            time.Duration
	broken          bool // the run did not come to its end
}

func (s *summary) total() int { return s.passed + s.skipped + len(s.failed) }

// ok reports whether all specs passed.
func (s *summary) ok() bool { return !s.broken && s.passed > 0 && s.passed == s.total() }

func (s *summary) add(o summary) {
	s.passed += o.passed
	s.skipped += o.skipped
	s.failed = append(s.failed, o.failed...)
	s.took += o.took
	s.broken = s.broken || o.broken
}

// suite is the part of Ginkgo's JSON report that matters here.
type suite struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
	}
}

// readReport summarises the specs whose names match focus. Ginkgo lists all others as skipped.
func readReport(file, focus string) (summary, error) {
	match, err := regexp.Compile(focus)
	if err != nil {
		return summary{}, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return summary{}, err
	}
	var suites []suite
	if err := json.Unmarshal(data, &suites); err != nil {
		return summary{}, fmt.Errorf("%s: %w", file, err)
	}
	var s summary
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := strings.Join(append(slices.Clone(spec.ContainerHierarchyTexts), spec.LeafNodeText), " ")
			switch {
			case spec.LeafNodeType != "It": // It is a step before or after all specs.
				if spec.State != "passed" {
					err = fmt.Errorf("%s: %s %s", file, spec.LeafNodeType, spec.State)
				}
			case !match.MatchString(name):
			case spec.State == "passed":
				s.passed++
			case spec.State == "skipped" || spec.State == "pending":
				s.skipped++
			default:
				s.failed = append(s.failed, name)
			}
		}
	}
	slices.Sort(s.failed)
	return s, err
}
