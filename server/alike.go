package server

import (
	"regexp"
	"strings"
)

// maxLine is how many runes of a line are shown that differs.
const maxLine = 300

// times are the ways in which observations tell moments, ages and durations, the longer before those in them.
var times = regexp.MustCompile(strings.Join([]string{
	`\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z| ?[+-]\d{2}:?\d{2})?)?`, // 2026-11-18T20:00:14.5Z
	`\b[IWEF]\d{4} \d{2}:\d{2}:\d{2}\.\d+`,                                               // as klog has it
	`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +(?:\d{1,2} )?[A-Z][a-z]{2} +\d{1,4}`,     // Wed Nov 18
	`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b`,
	`\b1[6-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b`, // since 1970, in seconds or less
	`\b(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+\b`,   // 5m12s, 3.2ms
}, "|"))

// untimed is a line without what it tells of times, and with the columns of a table as narrow as can be.
func untimed(line string) string {
	return strings.Join(strings.Fields(times.ReplaceAllString(line, "TIME")), " ")
}

// differs compares two observations but for times, and returns the first line that differs in each.
func differs(was, now string) (before, after string, differ bool) {
	a, b := strings.Split(was, "\n"), strings.Split(now, "\n")
	for i := range max(len(a), len(b)) {
		x, y := at(a, i), at(b, i)
		if x != y && untimed(x) != untimed(y) {
			return brief(x), brief(y), true
		}
	}
	return "", "", false
}

// at is a line of a text, empty behind its end.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// brief is the beginning of a line that is long.
func brief(line string) string {
	if r := []rune(line); len(r) > maxLine {
		return string(r[:maxLine]) + "…"
	}
	return line
}
