package tool

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Location is the time zone of a container: what TZ says, by the zone data among the container's own
// files, and UTC otherwise.
func Location(env *kit.Env) *time.Location {
	tz := strings.TrimPrefix(env.Vars["TZ"], ":")
	if tz == "" {
		return time.UTC
	}
	if data, err := env.ReadFile("/usr/share/zoneinfo/" + tz); err == nil {
		if loc, err := time.LoadLocationFromTZData(tz, data); err == nil {
			return loc
		}
	}
	return fixedZone(tz)
}

// fixedZone reads POSIX's form of a time zone without summer time, such as CET-1: what to add to the
// local time to get to Greenwich.
func fixedZone(tz string) *time.Location {
	i := strings.IndexAny(tz, "+-0123456789")
	if i < 3 {
		return time.UTC
	}
	hours, minutes, _ := strings.Cut(tz[i:], ":")
	h, err := strconv.Atoi(hours)
	if err != nil || h < -24 || h > 24 {
		return time.UTC
	}
	m, _ := strconv.Atoi(minutes)
	if h < 0 {
		m = -m
	}
	return time.FixedZone(tz[:i], -(h*3600 + m*60))
}

// layouts are the conversions of strftime that package time knows.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January",
	'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02",
	'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006",
	'z': "-0700", 'Z': "MST",
}

// Strftime formats a time as strftime(3) and GNU date do.
func Strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad, width := byte(0), 0
		for i+1 < len(format) && strings.IndexByte("-_0^#:", format[i]) >= 0 {
			pad = format[i]
			i++
		}
		for i+1 < len(format) && format[i] >= '1' && format[i] <= '9' {
			width = width*10 + int(format[i]-'0')
			i++
		}
		b.WriteString(padded(conversion(t, format[i], width, pad), pad))
	}
	return b.String()
}

func conversion(t time.Time, c byte, width int, pad byte) string {
	if c == 'z' && pad == ':' {
		return t.Format("-07:00")
	}
	if layout, ok := layouts[c]; ok {
		return t.Format(layout)
	}
	_, week := t.ISOWeek()
	year, _ := t.ISOWeek()
	switch c {
	case 's':
		return fmt.Sprint(t.Unix())
	case 'N':
		digits := fmt.Sprintf("%09d", t.Nanosecond())
		if width > 0 && width < 9 {
			return digits[:width]
		}
		return digits
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '%':
		return "%"
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case 'w':
		return fmt.Sprint(int(t.Weekday()))
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'G':
		return fmt.Sprint(year)
	case 'g':
		return fmt.Sprintf("%02d", year%100)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'P':
		return strings.ToLower(t.Format("PM"))
	}
	return "%" + string(c)
}

// padded applies GNU's flags.
func padded(s string, pad byte) string {
	switch pad {
	case '-':
		if trimmed := strings.TrimLeft(s, "0 "); trimmed != "" {
			return trimmed
		}
		return "0"
	case '_':
		trimmed := strings.TrimLeft(s, "0")
		return strings.Repeat(" ", len(s)-len(trimmed)) + trimmed
	case '^':
		return strings.ToUpper(s)
	case '0':
		return strings.ReplaceAll(s, " ", "0")
	}
	return s
}
