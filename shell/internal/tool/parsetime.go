package tool

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the dates that date -d and touch -d take.
var timeLayouts = []string{
	"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
	time.RFC3339, time.RFC3339Nano, "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05.999999999 -0700",
	time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, time.UnixDate,
	"2006.01.02-15:04:05", "2006.01.02-15:04", "Jan 2 2006 15:04:05", "Jan 2 15:04:05 2006", "Jan 2 2006", "2 Jan 2006",
	"2006/01/02 15:04:05", "2006/01/02", "01/02/2006", "20060102", "200601021504",
}

// ParseTime reads a date as people write it: many forms of absolute dates, @ and the seconds since
// 1970, and GNU's relative ones such as yesterday, 2 hours ago or next day. What it does not say is
// taken from now.
func ParseTime(text string, now time.Time) (time.Time, error) {
	bad := fmt.Errorf("invalid date '%s'", text)
	s := strings.TrimSpace(text)
	if seconds, ok := strings.CutPrefix(s, "@"); ok {
		f, err := strconv.ParseFloat(seconds, 64)
		if err != nil {
			return now, bad
		}
		return time.Unix(int64(f), int64((f-float64(int64(f)))*1e9)).In(now.Location()), nil
	}
	location := now.Location()
	if trimmed, ok := strings.CutSuffix(s, " UTC"); ok {
		s, location = trimmed, time.UTC
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, location); err == nil {
			return t.In(now.Location()), nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, location), nil
		}
	}
	if t, ok := relativeTime(strings.Fields(strings.ToLower(s)), now); ok {
		return t, nil
	}
	return now, bad
}

// relativeTime reads words such as "2 days ago" and "yesterday", possibly after a date.
func relativeTime(words []string, now time.Time) (time.Time, bool) {
	t := now
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "now", "today":
			continue
		case "yesterday":
			t = t.AddDate(0, 0, -1)
			continue
		case "tomorrow":
			t = t.AddDate(0, 0, 1)
			continue
		case "midnight":
			t = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
			continue
		}
		n := 1
		unit := words[i]
		switch unit {
		case "next":
		case "last":
			n = -1
		default:
			digits := strings.TrimLeft(unit, "+-0123456789")
			value, err := strconv.Atoi(unit[:len(unit)-len(digits)])
			if err != nil {
				if day, e := time.ParseInLocation("2006-01-02", unit, now.Location()); e == nil && i == 0 {
					t = day
					continue
				}
				return now, false
			}
			n, unit = value, digits
		}
		if unit == "" || unit == "next" || unit == "last" {
			if i++; i >= len(words) {
				return now, false
			}
			unit = words[i]
		}
		if i+1 < len(words) && words[i+1] == "ago" {
			n = -n
			i++
		}
		switch strings.TrimSuffix(unit, "s") {
		case "second", "sec":
			t = t.Add(time.Duration(n) * time.Second)
		case "minute", "min":
			t = t.Add(time.Duration(n) * time.Minute)
		case "hour":
			t = t.Add(time.Duration(n) * time.Hour)
		case "day":
			t = t.AddDate(0, 0, n)
		case "week":
			t = t.AddDate(0, 0, 7*n)
		case "month":
			t = t.AddDate(0, n, 0)
		case "year":
			t = t.AddDate(n, 0, 0)
		default:
			return now, false
		}
	}
	return t, len(words) > 0
}
