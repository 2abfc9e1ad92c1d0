package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// explained has the differences that are known: the situation, what the line has in it, and why.
//
//go:embed explained.txt
var explained string

// explanation is why something is not the same.
type explanation struct {
	situation, line *regexp.Regexp
	why             string
}

func readExplained(text string) (list []explanation, err error) {
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if s.Text() == "" || strings.HasPrefix(s.Text(), "#") {
			continue
		}
		parts := strings.SplitN(s.Text(), " | ", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("explained.txt: %q has not three parts", s.Text())
		}
		var e explanation
		if e.situation, err = regexp.Compile("^(?:" + parts[0] + ")$"); err != nil {
			return nil, err
		}
		if e.line, err = regexp.Compile(parts[1]); err != nil {
			return nil, err
		}
		e.why = parts[2]
		list = append(list, e)
	}
	return list, nil
}

// compareFiles compares what was seen of two clusters, and fails if there is a difference that nothing explains.
func compareFiles(w io.Writer, a, b string) error {
	known, err := readExplained(explained)
	if err != nil {
		return err
	}
	var seen [2]Seen
	for i, file := range []string{a, b} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &seen[i])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if n := compare(w, common(seen[0]), common(seen[1]), known); n > 0 {
		return fmt.Errorf("%d situations differ", n)
	}
	return nil
}

// releases are what one release of Kubernetes says and another does not, and what stands for both.
var releases = []struct {
	what *regexp.Regexp
	with string
}{
	// Schedulers up to 1.36 tell of resource claims, too.
	{regexp.MustCompile(`no new claims to deallocate, `), ""},
	// Kubelets from 1.37 on say why.
	{regexp.MustCompile(`(condition PodReadyToStartContainers False, reason )".*", message ".*"`), `$1"", message ""`},
}

// common leaves out what depends on the release.
func common(s Seen) Seen {
	out := Seen{}
	for name, facts := range s {
		for _, fact := range facts {
			for _, r := range releases {
				fact = r.what.ReplaceAllString(fact, r.with)
			}
			out[name] = append(out[name], fact)
		}
	}
	return out
}

// compare prints what differs, and returns in how many situations something does that nothing explains.
func compare(w io.Writer, a, b Seen, known []explanation) (bad int) {
	same, facts, differing := 0, 0, 0
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var lines []string
		open := false
		for _, side := range []struct {
			mark         string
			these, those []string
		}{{"- ", a[name], b[name]}, {"+ ", b[name], a[name]}} {
			for _, fact := range side.these {
				facts++
				if slices.Contains(side.those, fact) {
					continue
				}
				differing++
				i := slices.IndexFunc(known, func(e explanation) bool {
					return e.situation.MatchString(name) && e.line.MatchString(fact)
				})
				why := ""
				if i >= 0 {
					why = "   (" + known[i].why + ")"
				}
				open = open || i < 0
				lines = append(lines, side.mark+fact+why)
			}
		}
		verdict := "same"
		switch {
		case open:
			verdict = "DIFFERS"
			bad++
		case len(lines) > 0:
			verdict = "explained"
		default:
			same++
		}
		fmt.Fprintf(w, "%-22s %s\n", name, verdict)
		for _, l := range lines {
			fmt.Fprintln(w, "    "+l)
		}
	}
	fmt.Fprintf(w, "%d situations: %d the same, %d explained, %d differ; %d of %d facts are on one side only\n",
		len(all), same, len(all)-same-bad, bad, differing, facts)
	return bad
}
