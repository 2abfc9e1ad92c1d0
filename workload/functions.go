package workload

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

const (
	digits       = "0123456789"
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	maxText      = 1 << 20 // characters that a template may ask for
)

// functions are what templates call. Numbers may be given as texts too, since variables are texts.
func (d *dice) functions() template.FuncMap {
	return template.FuncMap{
		// int LOW HIGH is a whole number, both bounds included.
		"int": func(low, high any) (int, error) {
			l, h, err := bounds(low, high)
			if err != nil {
				return 0, err
			}
			return l + d.IntN(h-l+1), nil
		},
		// other LOW HIGH NOT is such a number, but not that one.
		"other": func(low, high, not any) (int, error) {
			l, h, err := bounds(low, high)
			if err != nil {
				return 0, err
			}
			x, err := toInt(not)
			if err != nil {
				return 0, err
			}
			if x < l || x > h {
				return l + d.IntN(h-l+1), nil
			}
			if l == h {
				return 0, fmt.Errorf("there is no other number than %d", l)
			}
			n := l + d.IntN(h-l)
			if n >= x {
				n++
			}
			return n, nil
		},
		// float LOW HIGH is a number between the two.
		"float": func(low, high float64) float64 { return low + (high-low)*d.Float64() },
		// choice A B ... is one of them.
		"choice": func(list ...string) (string, error) {
			if len(list) == 0 {
				return "", fmt.Errorf("choice of nothing")
			}
			return list[d.IntN(len(list))], nil
		},
		// text N is letters and digits, number N is digits. Nobody can foresee them.
		"text":   func(n any) (string, error) { return d.draw(alphanumeric, n) },
		"number": func(n any) (string, error) { return d.draw(digits, n) },
		// times N is a list to range over.
		"times": func(n any) ([]int, error) {
			count, err := length(n)
			return make([]int, count), err
		},
		// repeat N TEXT is the text so many times.
		"repeat": func(n, text any) (string, error) {
			count, err := length(n)
			return strings.Repeat(fmt.Sprint(text), count), err
		},
		// add A B is their sum.
		"add": func(a, b any) (int, error) {
			x, err := toInt(a)
			if err != nil {
				return 0, err
			}
			y, err := toInt(b)
			return x + y, err
		},
		// mul A B is their product.
		"mul": func(a, b any) (int, error) {
			x, err := toInt(a)
			if err != nil {
				return 0, err
			}
			y, err := toInt(b)
			return x * y, err
		},
		// line START STEP N is START + N*STEP, with a fraction.
		"line": func(start, step float64, n any) (float64, error) {
			x, err := toInt(n)
			return start + float64(x)*step, err
		},
		// near X D is a number that differs from X by at most D.
		"near": func(x, by float64) float64 { return x + by*(2*d.Float64()-1) },
		// day N is the date of so many days after the end of March 2015.
		"day": func(n any) (string, error) {
			x, err := toInt(n)
			return time.Date(2015, time.March, 31, 0, 0, 0, 0, time.UTC).AddDate(0, 0, x).Format(time.DateOnly), err
		},
		// quote TEXT is a regular expression that matches the text alone.
		"quote": func(text any) string { return regexp.QuoteMeta(fmt.Sprint(text)) },
		// pad N WIDTH is a number with zeros in front.
		"pad": func(n any, width int) (string, error) {
			x, err := toInt(n)
			return fmt.Sprintf("%0*d", width, x), err
		},
	}
}

func (d *dice) draw(from string, n any) (string, error) {
	count, err := length(n)
	if err != nil {
		return "", err
	}
	rng, b := rand.New(d.hidden), make([]byte, count)
	for i := range b {
		b[i] = from[rng.IntN(len(from))]
	}
	return string(b), nil
}

func bounds(low, high any) (l, h int, err error) {
	if l, err = toInt(low); err != nil {
		return 0, 0, err
	}
	if h, err = toInt(high); err != nil {
		return 0, 0, err
	}
	if h < l || h-l < 0 || h-l+1 <= 0 {
		return 0, 0, fmt.Errorf("no whole number is between %d and %d", l, h)
	}
	return l, h, nil
}

func length(n any) (int, error) {
	count, err := toInt(n)
	if err == nil && (count < 0 || count > maxText) {
		return 0, fmt.Errorf("%d is not a count between 0 and %d", count, maxText)
	}
	return count, err
}

func toInt(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case uint64:
		return int(v), nil
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0, fmt.Errorf("%q is no whole number", v)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%v is no whole number", v)
}
