package problem

import (
	"math"
	"strings"
	"testing"
)

func TestParseLoad(t *testing.T) {
	for text, want := range map[string]string{
		"50":                             "50 requests/s",
		"{rate: 20, mix: hotel-booking}": "20 requests/s of hotel-booking",
		"{rate: {daily: {mean: 50, amplitude: 0.5, period: 2m}}}":                          "25 to 75 requests/s (daily)",
		"{rate: [{constant: 5, for: 1m}, {ramp: {from: 5, to: 50}, for: 1m}]}":             "5 to 50 requests/s (constant, ramp)",
		"{users: {count: 20, think: {min: 1s, max: 2s}}}":                                  "20 users, who think for 1s to 2s",
		`{replay: {trace: "time\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9", speed: 2}}`:                "2 requests/s of a trace",
		"{rate: {burst: {base: 0, peak: 100, every: 1m, lasting: 5s}}, process: constant}": "0 to 100 requests/s (burst)",
	} {
		l, err := ParseLoad(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if l.String() != want || l.None() {
			t.Errorf("%s: %v, want %s", text, l, want)
		}
	}
	if l, err := ParseLoad("0"); err != nil || !l.None() {
		t.Errorf("0: %v, %v", l, err)
	}
	for text, want := range map[string]string{
		"-1":                               "rate: -1: want a number of requests a second, not negative",
		"NaN":                              "rate: NaN: want",
		"1e9":                              "1e+09 requests a second; the most is 10000",
		"":                                 "the document is empty",
		"many":                             "want names and values",
		"{rte: 5}":                         `unknown field "rte"; did you mean "rate"?`,
		"{}":                               "rate: it is missing",
		"{users: {}}":                      "users.count: it must be positive",
		"{rate: {step: {from: 1, to: 2}}}": "rate.step.every: it must be positive; rate.step.by: it must be positive",
	} {
		if l, err := ParseLoad(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, l, err, want)
		}
	}
}

// TestKey: loads that differ in anything have different keys.
func TestKey(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"10", "20", "{rate: 10, mix: a}", "{rate: 10, process: normal}", "{users: {count: 5, think: {min: 1s, max: 2s}}}",
		"{users: {count: 5, think: {min: 1s, max: 3s}}}", "{rate: {daily: {mean: 10, amplitude: 0.5, period: 1m}}}",
		"{rate: {daily: {mean: 10, amplitude: 0.5, period: 2m}}}", `{replay: {trace: "time\n1\n2"}}`, `{replay: {trace: "time\n1\n3"}}`,
	} {
		one, err := ParseLoad(text)
		if err != nil {
			t.Fatal(text, err)
		}
		two, _ := ParseLoad(text)
		if one.Key() != two.Key() {
			t.Errorf("%s has two keys", text)
		}
		if other, ok := seen[one.Key()]; ok {
			t.Errorf("%s has the key of %s", text, other)
		}
		seen[one.Key()] = text
	}
}

func FuzzParseLoad(f *testing.F) {
	f.Add("{rate: [{constant: 5, for: 1m}, {step: {from: 5, to: 50, by: 3, every: 1s}}]}")
	f.Add(`{replay: {trace: "time,operation\n0,a\n1,b", speed: 2}}`)
	f.Add("{users: {count: 20, think: {min: 1s, max: 2s}}}")
	f.Add("1e3")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := ParseLoad(text); err == nil {
			_, _, _ = l.String(), l.Key(), l.senseless()
		}
	})
}

// TestPeak: users who do not think have no bound.
func TestPeak(t *testing.T) {
	for text, want := range map[string]float64{
		"12": 12,
		"0":  0,
		"{rate: {ramp: {from: 5, to: 700}, for: 1m}}":              700,
		"{rate: 100, surges: {factor: 6, every: 1m, lasting: 5s}}": 600,
		"{users: {count: 300, think: {min: 0s, max: 1s}}}":         600,
		"{users: {count: 1, think: {min: 0s, max: 0s}}}":           math.Inf(1),
		"{replay: {trace: \"time\\n0\\n0.001\\n0.002\\n10\\n\"}}":  0.8,
	} {
		l, err := ParseLoad(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := l.Peak(); got != want {
			t.Errorf("%s has %g, not %g", text, got, want)
		}
	}
}
