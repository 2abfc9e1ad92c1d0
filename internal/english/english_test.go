package english

import "testing"

func TestForeign(t *testing.T) {
	for locale, want := range map[string]bool{
		"": false, "C": false, "C.UTF-8": false, "POSIX": false, "en_US.UTF-8": false, "en_GB": false,
		"de_DE.UTF-8": true, "ja_JP.eucJP": true,
	} {
		if got := foreign(locale); got != want {
			t.Errorf("foreign(%q) = %v", locale, got)
		}
	}
}
