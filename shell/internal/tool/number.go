package tool

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseSize reads a number with a suffix such as 10k, 4M or 1GB. A suffix that ends in B counts in
// powers of ten, as dd and head have it; b is 512.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid number '%s'", s)
	}
	suffix := s[len(digits):]
	factor := int64(1)
	switch {
	case suffix == "":
		return n, nil
	case suffix == "c":
		return n, nil
	case suffix == "w":
		factor = 2
	case suffix == "b":
		factor = 512
	default:
		power := strings.IndexByte("KMGTPE", strings.ToUpper(suffix)[0]) + 1
		base := int64(1024)
		switch strings.ToUpper(suffix[1:]) {
		case "", "IB":
		case "B":
			base = 1000
		default:
			power = 0
		}
		if power == 0 {
			return 0, fmt.Errorf("invalid number '%s'", s)
		}
		for range power {
			factor *= base
		}
	}
	if n != 0 && (n*factor)/factor != n {
		return 0, fmt.Errorf("invalid number '%s'", s)
	}
	return n * factor, nil
}

// ParseDuration reads a time such as 5, 0.5, 2m or 1d; seconds are meant where nothing is said.
func ParseDuration(s string) (time.Duration, error) {
	unit := time.Second
	digits := s
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 's':
			digits = s[:n-1]
		case 'm':
			digits, unit = s[:n-1], time.Minute
		case 'h':
			digits, unit = s[:n-1], time.Hour
		case 'd':
			digits, unit = s[:n-1], 24*time.Hour
		}
	}
	if digits == "infinity" || digits == "inf" {
		return math.MaxInt64, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || f < 0 || math.IsNaN(f) {
		return 0, fmt.Errorf("invalid number '%s'", s)
	}
	if d := f * float64(unit); d < math.MaxInt64 {
		return time.Duration(d), nil
	}
	return math.MaxInt64, nil
}

// HumanSize writes a number of bytes as ls -h and df -h do: 4.0K, 12.3M.
func HumanSize(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	f := float64(n)
	for _, unit := range "KMGTPE" {
		if f /= 1024; f < 1023.95 || unit == 'E' {
			return fmt.Sprintf("%.1f%c", f, unit)
		}
	}
	return ""
}
