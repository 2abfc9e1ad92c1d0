package past

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// layouts are the ways in which programs write the time into their logs. Each must say which day it is.
var layouts = []struct {
	pattern *regexp.Regexp
	layout  string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z`), "2006-01-02T15:04:05.000000000Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`), "2006-01-02T15:04:05.000000Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "2006-01-02T15:04:05.000Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00`), "2006-01-02T15:04:05.000-07:00"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2006-01-02T15:04:05Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00`), "2006-01-02T15:04:05-07:00"},
	{regexp.MustCompile(`\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000`), "02/Jan/2006:15:04:05 -0700"},
	{regexp.MustCompile(`\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d\.\d{3}`), "02 Jan 2006 15:04:05.000"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "2006/01/02 15:04:05"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`), "2006-01-02 15:04:05.000"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "2006-01-02 15:04:05"},
	{regexp.MustCompile(`\b\d{10}[.:]\d{6}\b`), epoch},
}

// epoch is the layout of seconds since 1970, with microseconds after a point or a colon.
const epoch = "epoch"

// near is how far the time in a line may be from when it was written. Another one is not the line's own: a
// date that somebody asked for, a certificate's end.
const near = time.Minute

// Stamp is a time in a text.
type Stamp struct {
	Time     time.Time
	from, to int
	layout   string
}

// Stamps finds where a text tells when it was written.
func Stamps(text string, written time.Time) (list []Stamp) {
	for _, l := range layouts {
		if l.layout != epoch && len(list) > 0 {
			continue // A shorter form may be a part of what was found.
		}
		for _, at := range l.pattern.FindAllStringIndex(text, -1) {
			t, err := parse(l.layout, text[at[0]:at[1]])
			if err != nil || t.Sub(written).Abs() > near {
				continue
			}
			if late := written.Sub(t); late >= 0 && late < precision(l.layout) {
				t = written // It is that time, cut off.
			}
			list = append(list, Stamp{t, at[0], at[1], l.layout})
		}
	}
	slices.SortFunc(list, func(a, b Stamp) int { return a.from - b.from })
	return list
}

// precision is how finely a layout tells the time.
func precision(layout string) time.Duration {
	if layout == epoch {
		return time.Microsecond
	}
	_, fraction, _ := strings.Cut(layout, ".")
	p := time.Second
	for range len(fraction) - len(strings.TrimLeft(fraction, "0")) {
		p /= 10
	}
	return max(p, 1)
}

func parse(layout, text string) (time.Time, error) {
	if layout != epoch {
		return time.Parse(layout, text)
	}
	n, err := strconv.ParseInt(text[:10]+text[11:], 10, 64)
	return time.UnixMicro(n), err
}

// Move returns a text as it would have been written some time later, or earlier.
func Move(text string, stamps []Stamp, by time.Duration) string {
	if len(stamps) == 0 {
		return text
	}
	b, done := make([]byte, 0, len(text)), 0
	for _, s := range stamps {
		b = append(b, text[done:s.from]...)
		t := s.Time.Add(by).UTC()
		if s.layout == epoch {
			digits := strconv.FormatInt(t.UnixMicro(), 10)
			b = append(append(append(b, digits[:10]...), text[s.from+10]), digits[10:]...)
		} else {
			b = t.AppendFormat(b, s.layout)
		}
		done = s.to
	}
	return string(append(b, text[done:]...))
}

// Unstamped is a text without its times.
func Unstamped(text string, stamps []Stamp) string {
	var b strings.Builder
	done := 0
	for _, s := range stamps {
		b.WriteString(text[done:s.from])
		done = s.to
	}
	b.WriteString(text[done:])
	return b.String()
}
