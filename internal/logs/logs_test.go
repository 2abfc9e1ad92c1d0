package logs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want Settings
		ok   bool
	}{
		{"", Settings{}, true},
		{"debug", Settings{"debug", ""}, true},
		{"json", Settings{"", "json"}, true},
		{"info,json", Settings{"info", "json"}, true},
		{"text, off", Settings{"off", "text"}, true},
		{"loud", Settings{}, false},
		{"debug,", Settings{}, false},
		{"debug,info", Settings{}, false}, // Which one is meant?
		{"json,text", Settings{}, false},
		{"DEBUG", Settings{}, false},
		{"info+2", Settings{}, false}, // slog's own reader takes it.
		{"debug\njson", Settings{}, false},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if ok := err == nil; ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q: the error has more than a line: %q", tt.text, err)
		}
	}
	if got := (Settings{Level: "debug"}).Or(Settings{"info", "json"}); got != (Settings{"debug", "json"}) {
		t.Errorf("what is given does not win: %+v", got)
	}
}

func TestLevels(t *testing.T) {
	lines := map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1, "off": 0, "": 0}
	for level, want := range lines {
		var b bytes.Buffer
		l := Settings{Level: level}.New(&b)
		l.Debug("a")
		l.Info("a")
		l.Warn("a")
		l.Error("a")
		if got := strings.Count(b.String(), "\n"); got != want {
			t.Errorf("%q: %d lines, want %d", level, got, want)
		}
	}
	Or(nil).Error("nobody hears it")
}

// quoted is a value of the text in quotes.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// valid is a text as JSON can have it.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// What somebody else says stays within its value, in its line.
func TestInjection(t *testing.T) {
	for _, hostile := range []string{
		"x\ntime=2026-01-01T00:00:00Z level=ERROR msg=forged", "x\r\nforged", "\x1b[2J\x1b[1;1Hforged", "a\" run=forged b=\"",
		"\u2028forged\u0085", "\u009b2Jforged\u202e\U000e0001", "\x00\x07\x9b31m", "run=forged",
	} {
		for _, format := range Formats {
			var b bytes.Buffer
			l := Settings{Level: "debug", Format: format}.New(&b)
			l.Warn(hostile, "value", hostile, "run", "true")
			ErrorLog(l, slog.LevelWarn, "api").Print(hostile)
			out := b.String()
			if strings.Count(out, "\n") != 2 || strings.ContainsAny(out, "\r\x1b\x00\x07\u2028\u0085\u009b\u202e\U000e0001") || bytes.IndexByte(b.Bytes(), 0x9b) >= 0 {
				t.Errorf("%s: %q came out as %q", format, hostile, out)
			}
			if format != "json" {
				if bare := quoted.ReplaceAllString(out, ""); strings.Contains(bare, "forged") {
					t.Errorf("%q forged an attribute: %s", hostile, out)
				}
				continue
			}
			for line := range strings.Lines(out) {
				var fields map[string]any
				if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["level"] != "WARN" || fields["msg"] != valid(hostile) {
					t.Errorf("%q: %v in %s", hostile, err, line)
				}
			}
		}
	}
}

// What is known to be secret is not written, wherever somebody puts it and however it is quoted.
func TestSecrets(t *testing.T) {
	secrets := []string{"open sesame", `with "quotes" <&>`, "with\nlines", "short", "open sesame street"}
	for _, format := range Formats {
		var b bytes.Buffer
		l := Settings{Level: "debug", Format: format}.New(&b, secrets...)
		for _, s := range secrets {
			l.Info("found "+s, "header", "Bearer "+s, "nested", slog.GroupValue(slog.String("key", s)), "any", map[string]string{"k": s})
		}
		out := b.String()
		for _, leak := range []string{"sesame", "quotes", "street", `with\n`} {
			if strings.Contains(out, leak) {
				t.Errorf("%s: %q is in %s", format, leak, out)
			}
		}
		if !strings.Contains(out, "short") || !strings.Contains(out, blot) {
			t.Errorf("%s: %s", format, out)
		}
	}
}
