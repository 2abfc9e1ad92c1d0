package past

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// layouts are the ways in which programs write the time into their logs, each with its shape: 0 stands for a digit, A
// for a capital and a for a small letter. Each must say which day it is.
var layouts = []struct{ shape, layout string }{
	{"0000-00-00T00:00:00.000000000Z", "2006-01-02T15:04:05.000000000Z"},
	{"0000-00-00T00:00:00.000000Z", "2006-01-02T15:04:05.000000Z"},
	{"0000-00-00T00:00:00.000Z", "2006-01-02T15:04:05.000Z"},
	{"0000-00-00T00:00:00.000+00:00", "2006-01-02T15:04:05.000-07:00"},
	{"0000-00-00T00:00:00Z", "2006-01-02T15:04:05Z"},
	{"0000-00-00T00:00:00+00:00", "2006-01-02T15:04:05-07:00"},
	{"00/Aaa/0000:00:00:00 +0000", "02/Jan/2006:15:04:05 -0700"},
	{"00 Aaa 0000 00:00:00.000", "02 Jan 2006 15:04:05.000"},
	{"0000/00/00 00:00:00.000", "2006/01/02 15:04:05.000"},
	{"0000/00/00 00:00:00", "2006/01/02 15:04:05"},
	{"0000-00-00 00:00:00.000000", "2006-01-02 15:04:05.000000"},
	{"0000-00-00 00:00:00.000", "2006-01-02 15:04:05.000"},
	{"0000-00-00 00:00:00,000", "2006-01-02 15:04:05,000"},
	{"0000-00-00 00:00:00", "2006-01-02 15:04:05"},
	{"Aaa Aaa 00 00:00:00.000000 0000", "Mon Jan 02 15:04:05.000000 2006"},
	{"0000000000.000000", epoch},
	{"0000000000:000000", epoch},
}

// header is how klog begins a line: with how bad it is, a time without a year, and a process.
const (
	headerShape = "A0000 00:00:00.000000 "
	header      = "0102 15:04:05.000000"
)

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
	if shaped(text, headerShape) {
		t, err := parse(header, text[1:1+len(header)], written)
		if err == nil && t.Sub(written).Abs() <= near {
			return []Stamp{{t, 1, 1 + len(header), header}}
		}
	}
	for _, l := range layouts {
		if l.layout != epoch && len(list) > 0 {
			continue // A shorter form may be a part of what was found.
		}
		for from := range text {
			to := from + len(l.shape)
			if !shaped(text[from:], l.shape) || l.layout == epoch && (inWord(text, from-1) || inWord(text, to)) {
				continue
			}
			t, err := parse(l.layout, text[from:to], written)
			if err != nil || t.Sub(written).Abs() > near {
				continue
			}
			if late := written.Sub(t); late >= 0 && late < precision(l.layout) {
				t = written // It is that time, cut off.
			}
			list = append(list, Stamp{t, from, to, l.layout})
		}
	}
	slices.SortFunc(list, func(a, b Stamp) int { return a.from - b.from })
	return list
}

// shaped reports whether a text begins with a shape.
func shaped(text, shape string) bool {
	if len(text) < len(shape) {
		return false
	}
	for i := range len(shape) {
		c := text[i]
		switch shape[i] {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case 'A':
			if c < 'A' || c > 'Z' {
				return false
			}
		case 'a':
			if c < 'a' || c > 'z' {
				return false
			}
		default:
			if c != shape[i] {
				return false
			}
		}
	}
	return true
}

// inWord reports whether there is a letter or a digit at an index.
func inWord(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	c := text[i]
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// precision is how finely a layout tells the time.
func precision(layout string) time.Duration {
	if layout == epoch {
		return time.Microsecond
	}
	p := time.Second
	i := strings.IndexAny(layout, ".,")
	if i < 0 {
		return p
	}
	fraction := layout[i+1:]
	for range len(fraction) - len(strings.TrimLeft(fraction, "0")) {
		p /= 10
	}
	return max(p, 1)
}

// parse reads a time. One without a year is of the year in which it is nearest to when it was written.
func parse(layout, text string, written time.Time) (time.Time, error) {
	switch layout {
	case epoch:
	case header:
		t, err := time.Parse(layout, text)
		in := func(year int) time.Time { return t.AddDate(year-t.Year(), 0, 0) }
		year := written.UTC().Year()
		nearest := in(year)
		for _, of := range []time.Time{in(year - 1), in(year + 1)} {
			if of.Sub(written).Abs() < nearest.Sub(written).Abs() {
				nearest = of
			}
		}
		return nearest, err
	default:
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
