package trainticket

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit/past"
)

func TestTokens(t *testing.T) {
	now := time.Date(2026, time.March, 9, 12, 0, 0, 0, time.UTC)
	token, err := claims{"u", "somebody", now.Add(time.Hour).Unix()}.sign("key")
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := readToken("key", token, now); !ok || c.User != "u" {
		t.Errorf("%+v, %v", c, ok)
	}
	head, rest, _ := strings.Cut(token, ".")
	for name, try := range map[string]struct {
		key, token string
		at         time.Time
	}{
		"another key":   {"other", token, now},
		"too late":      {"key", token, now.Add(time.Hour)},
		"nothing":       {"key", "", now},
		"no signature":  {"key", head + ".", now},
		"another head":  {"key", "e30." + rest, now},
		"cut off":       {"key", token[:len(token)-2], now},
		"far too large": {"key", strings.Repeat("x.", 4000), now},
	} {
		if _, ok := readToken(try.key, try.token, try.at); ok {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestMoney(t *testing.T) {
	for text, want := range map[string]int64{"95.00": 9500, "0.05": 5, "1250.50": 125050} {
		if got, err := readMoney(text); got != want || err != nil || money(got) != text {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "95", "95.5", "-1.00", "1.00x", "1e9", " 1.00", "99999999999.00"} {
		if got, err := readMoney(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestFreeSeats(t *testing.T) {
	if got, err := freeSeat(3, []int{1, 3}); got.SeatNo != 2 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := freeSeat(2, []int{1, 2}); err == nil {
		t.Error("a seat of a full train")
	}
}

// What was booked in the past is spread over weeks, has the prices that it has now, and is the same for all who draw it.
func TestOrdersOfThePast(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	list := ordersBefore(p, rand.New(rand.NewPCG(7, 1)))
	if d := cmp.Diff(list, ordersBefore(p, rand.New(rand.NewPCG(7, 1)))); d != "" {
		t.Error(d)
	}
	old := 0
	for i, o := range list {
		if i > 0 && o.BoughtDate.Before(list[i-1].BoughtDate) || o.BoughtDate.After(p.Began) {
			t.Fatalf("order %d is of %v", i, o.BoughtDate)
		}
		if join.Sub(o.BoughtDate) > 24*time.Hour {
			old++
		}
		if o.TrainNumber == "G1234" && o.Price != map[int]string{firstClass: "250.00", secondClass: "95.00"}[o.SeatClass] {
			t.Fatalf("%+v", o)
		}
	}
	if len(list) < 100 || len(list) > 1500 || old < 20 {
		t.Errorf("%d orders, %d older than a day", len(list), old)
	}
}
