package cri

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// identifiers are UUIDs, and runs of hex digits.
	identifiers = regexp.MustCompile(`\b(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{8,}|[0-9A-F]{8,})\b`)
	// values are what keys of a line have.
	values = regexp.MustCompile(`=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)`)
)

// name is where a line has the name of one thing among many.
type name struct{ from, to int }

// names finds what a line names. A run of decimal digits may be a number, and one of letters a word.
func names(text string) (list []name) {
	for _, at := range identifiers.FindAllStringIndex(text, -1) {
		if isName(text[at[0]:at[1]]) {
			list = append(list, name{at[0], at[1]})
		}
	}
	return list
}

// isName reports whether an identifier is one.
func isName(id string) bool {
	return len(id) == uuidLen || strings.ContainsAny(id, "abcdefABCDEF") && strings.ContainsAny(id, "0123456789")
}

const (
	uuidLen     = 36
	uuidVersion = 14 // where a UUID has the digit of its version,
	uuidVariant = 19 // and that of its variant
	objectIDLen = 24
	stampLen    = 8 // hex digits of an ObjectID that tell when it was made
	// gregorian is when the time of UUIDs begins, before 1970, in their ticks.
	gregorian = 0x01b21dd213814000
	tick      = 100 * time.Nanosecond
)

// rename returns a line that was written at one time as it would be at another one, of other things: names of the
// same shape, one for each. Those that tell when something was made go on telling it.
func rename(text string, list []name, written, at time.Time, r *rand.Rand) string {
	if len(list) == 0 {
		return text
	}
	b, renamed := []byte(text), map[string]string{}
	for _, n := range list {
		id := text[n.from:n.to]
		if renamed[id] == "" {
			renamed[id] = later(id, another(id, r), written, at)
		}
		copy(b[n.from:n.to], renamed[id])
	}
	return string(b)
}

// later returns the name of another thing, made as long before a line as the first one was before its own. UUIDs of
// version 1 and ObjectIDs tell the time. The rest of such a UUID is its maker's.
func later(id, other string, written, at time.Time) string {
	recent := func(made time.Time) bool { return made.Sub(written).Abs() < time.Minute }
	switch {
	case len(id) == uuidLen && id[uuidVersion] == '1':
		ticks, err := strconv.ParseInt(id[15:18]+id[9:13]+id[:8], 16, 64)
		since := time.Duration(ticks-gregorian) * tick
		if err != nil || !recent(time.Unix(0, int64(since))) {
			return other
		}
		t := fmt.Sprintf("%015x", ticks+int64(at.Sub(written)/tick))
		return t[7:] + "-" + t[3:7] + "-1" + t[:3] + id[18:]
	case len(id) == objectIDLen:
		made, err := strconv.ParseInt(id[:stampLen], 16, 64)
		if t := time.Unix(made, 0); err == nil && recent(t) {
			ago := written.Truncate(time.Second).Sub(t) // It is cut off to the second.
			return fmt.Sprintf("%08x", at.Add(-ago).Unix()) + other[stampLen:]
		}
	}
	return other
}

// another is a name of the same shape.
func another(id string, r *rand.Rand) string {
	digits := "0123456789abcdef"
	if strings.ContainsAny(id, "ABCDEF") {
		digits = "0123456789ABCDEF"
	}
	b := []byte(id)
	for {
		for i, c := range b {
			if c != '-' && (len(b) != uuidLen || i != uuidVersion && i != uuidVariant) {
				b[i] = digits[r.IntN(len(digits))]
			}
		}
		if isName(string(b)) {
			return string(b)
		}
	}
}
