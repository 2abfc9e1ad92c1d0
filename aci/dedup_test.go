package aci

import (
	"slices"
	"strings"
	"testing"
)

func TestStamps(t *testing.T) {
	for line, want := range map[string][]string{
		"2025-09-24T18:41:09.830Z start":                              {"2025-09-24T18:41:09.830Z"},
		"2025-09-24 18:41:09,830 start":                               {"2025-09-24 18:41:09,830"},
		"2025-09-24T18:41:09Z to 2025-09-24T18:42:09+02:00":           {"2025-09-24T18:41:09Z", "2025-09-24T18:42:09+02:00"},
		"[2025-Sep-24 18:41:09.83] <error>":                           {"2025-Sep-24 18:41:09.83"},
		"Wed Sep 24 18:41:09 2025 x":                                  {"Wed Sep 24 18:41:09 2025"},
		"18:41:09 x":                                                  {"18:41:09"},
		"Normal  Pulled  10m5s  kubelet":                              {"10m5s"},
		"Warning  BackOff  30s (x4 over 2m)":                          {"30s", "2m"},
		"took 12.5ms":                                                 {"12.5ms"},
		"no timestamp here":                                           nil,
		"geo-5d8f7s-abc listens on port 8083, version v1.2.3, id m5s": nil,
	} {
		if got := stamp.FindAllString(line, -1); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestDedup(t *testing.T) {
	const green, reset = "\x1b[32m", "\x1b[0m"
	for _, tt := range []struct {
		name  string
		most  int
		lines []string
		want  []string
	}{
		{"nothing", 4, nil, nil},
		{"times only", 1, []string{`{"time":"2025-09-24T18:41:09Z","msg":"a"}`, `{"time":"2025-09-24T18:41:10Z","msg":"a"}`}, []string{`{"time":"2025-09-24T18:41:10Z","msg":"a"}  [2 times]`}},
		{"other message", 1, []string{`{"time":"2025-09-24T18:41:09Z","msg":"a"}`, `{"time":"2025-09-24T18:41:10Z","msg":"b"}`}, []string{`{"time":"2025-09-24T18:41:09Z","msg":"a"}`, `{"time":"2025-09-24T18:41:10Z","msg":"b"}`}},
		{"off", 0, []string{"a", "a"}, []string{"a", "a"}},
		{
			"an error and three alike", 3,
			[]string{"2025-09-24T18:41:09Z ERR no", "2025-09-24T18:41:10Z INF TLS disabled.", "2025-09-24T18:41:11Z INF TLS disabled.", "2025-09-24T18:41:12Z INF TLS disabled."},
			[]string{"2025-09-24T18:41:09Z ERR no", "2025-09-24T18:41:12Z INF TLS disabled.  [3 times]"},
		},
		{
			"colours", 2,
			[]string{green + "18:41:09" + reset + " New session successfull...", green + "18:41:10" + reset + " New session successfull...", green + "18:41:11" + reset + " Generating test data..."},
			[]string{green + "18:41:10" + reset + " New session successfull...  [2 times]", green + "18:41:11" + reset + " Generating test data..."},
		},
		{
			"alternating", 2,
			[]string{"18:41:01 a", "18:41:02 b", "18:41:03 a", "18:41:04 b", "18:41:05 a", "18:41:06 b"},
			[]string{"18:41:05 a  [3 times]", "18:41:06 b  [3 times]"},
		},
		{"alternating, behind another line", 2, []string{"x", "a", "b", "a", "b"}, []string{"x", "a  [2 times]", "b  [2 times]"}},
		{"a pattern that is too long", 1, []string{"a", "b", "a", "b"}, []string{"a", "b", "a", "b"}},
	} {
		var got []string
		for _, e := range dedup(tt.lines, tt.most) {
			got = append(got, e.String())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}
