package aci

import (
	"fmt"
	"regexp"
	"slices"
)

// maxBlock is the longest pattern of lines whose repetition is noticed.
const maxBlock = 4

// stamp is a time or a duration in a log line: ISO 8601, 2025-Sep-24 18:41:09.83, Wed Sep 24 18:41:09
// 2025, Sep 24 18:41:09, 18:41:09, 10m5s.
var stamp = regexp.MustCompile(
	`\d{4}[-/](?:\d{2}|[A-Z][a-z]{2})[-/]\d{2}[ T]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?` +
		`|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d{2}:\d{2}:\d{2}(?: \d{4})?` +
		`|\d{2}:\d{2}:\d{2}(?:[.,]\d+)?` +
		`|\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|µs|us|ns|s)\b|\b\d+h\d+m\b|\b\d+m\b`)

// mask is a line without its times.
func mask(line string) string { return stamp.ReplaceAllString(line, "\x00") }

// entry is a line that stands for several.
type entry struct {
	text, masked string
	times        int
}

// dedup keeps, of blocks of up to most lines that follow one another and differ in times only, the
// latest, and says how many there were.
func dedup(lines []string, most int) []entry {
	list := make([]entry, len(lines))
	for i, l := range lines {
		list[i] = entry{l, mask(l), 1}
	}
	for size := 1; size <= most; size++ {
		list = merge(list, size)
	}
	return list
}

// merge drops a block of lines if the next one is equal to it.
func merge(list []entry, size int) []entry {
	var out []entry
	for at := 0; at < len(list); {
		if at+2*size > len(list) || !slices.EqualFunc(list[at:at+size], list[at+size:at+2*size], func(a, b entry) bool {
			return a.masked == b.masked
		}) {
			out = append(out, list[at])
			at++
			continue
		}
		for i := range size {
			list[at+size+i].times += list[at+i].times
		}
		at += size
	}
	return out
}

// String is the line, with how often it was there.
func (e entry) String() string {
	if e.times == 1 {
		return e.text
	}
	return fmt.Sprintf("%s  [%d times]", e.text, e.times)
}
