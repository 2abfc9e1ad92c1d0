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
		"I1116 15:20:03.680000       1 server.go:1] Starting":                   "I1114 15:20:00.680000       1 server.go:1] Starting",
		"E1116 15:20:02.433333       1 a.go:7] at 1116 15:20:02.433333":         "E1114 15:19:59.433333       1 a.go:7] at 1116 15:20:02.433333",
		"order I1116 15:20:03.680000":                                           "order I1116 15:20:03.680000",
		"[2026-11-16 15:20:03,433] INFO x (kafka)":                              "[2026-11-14 15:20:00,433] INFO x (kafka)",
		"[2026/11/16 15:20:03.433 +00:00] [INFO] [a.go:1]":                      "[2026/11/14 15:20:00.433 +00:00] [INFO] [a.go:1]",
		"[Mon Nov 16 15:20:03.433000 2026] [core] x":                            "[Sat Nov 14 15:20:00.433000 2026] [core] x",
		"2026-11-16 15:20:03.433333+00:00 [info] <0.254.0> x":                   "2026-11-14 15:20:00.433333+00:00 [info] <0.254.0> x",
		"2026-11-16T15:20:02Z Reserved in=2022-08-13T00:00:00Z":                 "2026-11-14T15:19:59Z Reserved in=2022-08-13T00:00:00Z",
	} {
		if got := Move(text, Stamps(text, written), by); got != want {
			t.Errorf("%q has become %q, want %q", text, got, want)
		}
	}
}

// TestYearOfStamp holds that a time without a year is of the year that is near, also at its end.
func TestYearOfStamp(t *testing.T) {
	written := time.Date(2027, 1, 1, 0, 0, 2, 0, time.UTC)
	const text = "I1231 23:59:59.500000       1 server.go:1] Starting"
	stamps := Stamps(text, written)
	if len(stamps) != 1 || !stamps[0].Time.Equal(written.Add(-2500*time.Millisecond)) {
		t.Fatalf("it has the times %v", stamps)
	}
	const want = "I0101 00:00:09.500000       1 server.go:1] Starting"
	if got := Move(text, stamps, 10*time.Second); got != want {
		t.Errorf("it has become %q, want %q", got, want)
	}
	leap := time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	if got := Stamps("I0229 12:00:00.000000       1 a.go:1] x", leap); len(got) != 1 || !got[0].Time.Equal(leap) {
		t.Errorf("on the day of a leap year it has the times %v", got)
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
