package text

import (
	"cmp"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
)

// order compares two keys.
func (o orderFlags) order(a, b string) int {
	switch {
	case o.numeric:
		return cmp.Compare(leadingNumber(a), leadingNumber(b))
	case o.general:
		return cmp.Compare(generalNumber(a), generalNumber(b))
	case o.human:
		return cmp.Compare(humanNumber(a), humanNumber(b))
	case o.month:
		return cmp.Compare(month(a), month(b))
	case o.version:
		return compareVersions(a, b)
	case o.random:
		return cmp.Compare(hashed(a), hashed(b))
	}
	return strings.Compare(o.reduced(a), o.reduced(b))
}

// reduced is what of a key counts.
func (o orderFlags) reduced(s string) string {
	if o.dictionary || o.printing {
		s = strings.Map(func(r rune) rune {
			blank := r == ' ' || r == '\t'
			switch {
			case o.dictionary && !blank && !unicode.IsLetter(r) && !unicode.IsDigit(r),
				o.printing && !unicode.IsPrint(r):
				return -1
			}
			return r
		}, s)
	}
	if o.fold {
		s = strings.ToUpper(s)
	}
	return s
}

// numberLength is how much at the start of s is a decimal number.
func numberLength(s string) int {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	for dot := false; i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' && !dot); i++ {
		dot = dot || s[i] == '.'
	}
	return i
}

func leadingNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t")
	f, _ := strconv.ParseFloat(s[:numberLength(s)], 64)
	return f
}

// generalNumber also reads exponents.
func generalNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t")
	for i := len(s); i > 0; i-- {
		if f, err := strconv.ParseFloat(s[:i], 64); err == nil {
			return f
		}
	}
	return 0
}

// humanNumber also reads 2K and 1.5G.
func humanNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t")
	n := numberLength(s)
	f := leadingNumber(s)
	if n < len(s) {
		for range strings.IndexByte("KMGTPE", s[n]&^0x20) + 1 {
			f *= 1024
		}
	}
	return f
}

func month(s string) int {
	s = strings.ToUpper(strings.TrimLeft(s, " \t"))
	if len(s) < 3 {
		return 0
	}
	at := strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", s[:3])
	if at < 0 || at%3 != 0 {
		return 0
	}
	return at/3 + 1
}

func hashed(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// compareVersions compares runs of digits as numbers: v1.10 comes after v1.9.
func compareVersions(a, b string) int {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for a != "" && b != "" {
		if digit(a[0]) && digit(b[0]) {
			i, j := 0, 0
			for i < len(a) && digit(a[i]) {
				i++
			}
			for j < len(b) && digit(b[j]) {
				j++
			}
			x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
			if order := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); order != 0 {
				return order
			}
			a, b = a[i:], b[j:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}
