package past

import (
	"testing"
	"time"
)

// The time that a program writes into a line moves with the line; other times do not.
func TestMove(t *testing.T) {
	written := time.Date(2026, 11, 16, 15, 20, 3, 680_000_000, time.UTC)
	const by = -48*time.Hour - 3*time.Second
	for text, want := range map[string]string{
		"no time": "no time",
		"2026-11-16T15:20:02Z INF hotel/config.go > Reading":                    "2026-11-14T15:19:59Z INF hotel/config.go > Reading",
		"2026-11-16T15:20:02+00:00 x":                                           "2026-11-14T15:19:59+00:00 x",
		"2026-11-16T15:20:02.433Z [INFO] agent: Started":                        "2026-11-14T15:19:59.433Z [INFO] agent: Started",
		"2026-11-16T15:20:02.433333Z x":                                         "2026-11-14T15:19:59.433333Z x",
		"2026-11-16T15:20:02.433333333Z x":                                      "2026-11-14T15:19:59.433333333Z x",
		`{"t":{"$date":"2026-11-16T15:20:03.680+00:00"}}`:                       `{"t":{"$date":"2026-11-14T15:20:00.680+00:00"}}`,
		`10.0.0.1 - [16/Nov/2026:15:20:03 +0000] "GET /"`:                       `10.0.0.1 - [14/Nov/2026:15:20:00 +0000] "GET /"`,
		"1:M 16 Nov 2026 15:20:03.680 * Ready":                                  "1:M 14 Nov 2026 15:20:00.680 * Ready",
		"2026/11/16 15:20:03 [notice] 1#1: start":                               "2026/11/14 15:20:00 [notice] 1#1: start",
		`{"msg":"Starting","ts":1794842403.680123}`:                             `{"msg":"Starting","ts":1794669600.680123}`,
		`{"$date":"2026-11-16T15:20:03.680+00:00"} [1794842403:680123][1:0x7f]`: `{"$date":"2026-11-14T15:20:00.680+00:00"} [1794669600:680123][1:0x7f]`,
		"id=1234567890.123456":                                                  "id=1234567890.123456",
		"2026-11-16 15:20:03 x":                                                 "2026-11-14 15:20:00 x",
		"2026-11-16 15:20:03.680 x":                                             "2026-11-14 15:20:00.680 x",
		"2026-11-16T15:20:02Z Reserved in=2022-08-13T00:00:00Z":                 "2026-11-14T15:19:59Z Reserved in=2022-08-13T00:00:00Z",
	} {
		if got := Move(text, Stamps(text, written), by); got != want {
			t.Errorf("%q has become %q, want %q", text, got, want)
		}
	}
}

func BenchmarkStamps(b *testing.B) {
	written := time.Date(2026, 11, 16, 15, 20, 3, 680_000_000, time.UTC)
	const text = `{"t":{"$date":"2026-11-16T15:20:03.680+00:00"},"s":"I",  "c":"STORAGE",  "id":22430,   "ctx":"WTCheckpointThread",` +
		`"msg":"WiredTiger message","attr":{"message":"[1794842403:680123][1:0x7f], WT_SESSION.checkpoint: saving"}}`
	for b.Loop() {
		if len(Stamps(text, written)) != 2 {
			b.Fatal("not found")
		}
	}
}
