package world

import (
	"regexp"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
)

// stamps are the ways in which programs write the time into their logs. Each must say which day it is.
var stamps = []struct {
	pattern *regexp.Regexp
	layout  string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z`), "2006-01-02T15:04:05.000000000Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`), "2006-01-02T15:04:05.000000Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "2006-01-02T15:04:05.000Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00`), "2006-01-02T15:04:05.000-07:00"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|\+00:00)`), time.RFC3339},
	{regexp.MustCompile(`\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000`), "02/Jan/2006:15:04:05 -0700"},
	{regexp.MustCompile(`\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d\.\d{3}`), "02 Jan 2006 15:04:05.000"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "2006/01/02 15:04:05"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?`), "2006-01-02 15:04:05"},
}

// near is how far the time in a line may be from when it was written. Another one is not the line's own: a
// date that somebody asked for, a certificate's end.
const near = time.Minute

// moveLog moves the lines of a log in time, with the times in their texts.
func moveLog(lines []cloud.Line, by time.Duration) {
	for i := range lines {
		l := &lines[i]
		l.Text = moveText(l.Text, l.Time, by)
		l.Time = l.Time.Add(by)
	}
}

func moveText(text string, written time.Time, by time.Duration) string {
	for _, s := range stamps {
		moved := false
		text = s.pattern.ReplaceAllStringFunc(text, func(stamp string) string {
			t, err := time.Parse(s.layout, stamp)
			if err != nil || t.Sub(written).Abs() > near {
				return stamp
			}
			moved = true
			return t.Add(by).Format(layoutOf(s.layout, stamp))
		})
		if moved {
			return text
		}
	}
	return text
}

// layoutOf returns a layout for stamps that look like one: as many digits, and UTC written as it was.
func layoutOf(layout, stamp string) string {
	switch {
	case layout == time.RFC3339 && stamp[len(stamp)-1] != 'Z':
		return "2006-01-02T15:04:05-07:00"
	case layout == "2006-01-02 15:04:05" && len(stamp) > len(layout):
		return layout + ".000"
	}
	return layout
}
