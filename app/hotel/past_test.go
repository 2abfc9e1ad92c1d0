package hotel

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestBookingsOfThePast holds that rooms were booked over weeks, that documents tell their times, and that everybody draws
// the same from a seed.
func TestBookingsOfThePast(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	list := bookingsBefore(p, rand.New(rand.NewPCG(7, 1)))
	if d := cmp.Diff(list, bookingsBefore(p, rand.New(rand.NewPCG(7, 1)))); d != "" {
		t.Error(d)
	}
	old := 0
	for i, b := range list {
		at := b.ID.Timestamp()
		if at.After(p.Began) || join.Sub(at) > 20*24*time.Hour+time.Second || i > 0 && at.Before(list[i-1].ID.Timestamp()) {
			t.Fatalf("booking %d is of %v", i, at)
		}
		if b.Booking.InDate >= b.Booking.OutDate {
			t.Fatalf("a stay from %s to %s", b.Booking.InDate, b.Booking.OutDate)
		}
		if join.Sub(at) > 24*time.Hour {
			old++
		}
	}
	if old < 20 || len(list) < 100 || len(list) > 1500 {
		t.Errorf("%d bookings, %d older than a day", len(list), old)
	}
}

// TestBookingsAreLoggedAlike holds that a line of the past reads as one of now.
func TestBookingsAreLoggedAlike(t *testing.T) {
	b := booking{HotelID: "9", CustomerName: "Cornell_1", InDate: "2015-04-09", OutDate: "2015-04-10", Number: 1}
	at := time.Date(2026, 11, 16, 15, 20, 3, 0, time.UTC)
	var now bytes.Buffer
	logBooked(service.NewLog(&now, slog.LevelInfo), at, b)
	got := bookedLine(at, b)
	if got+"\n" != now.String() {
		t.Errorf("%q and %q differ", got, now.String())
	}
	if !strings.HasPrefix(got, "2026-11-16T15:20:03Z INF hotel/") ||
		!strings.HasSuffix(got, "> Reserved hotel=9 customer=Cornell_1 in=2015-04-09 out=2015-04-10 rooms=1") {
		t.Errorf("it is logged as %q", got)
	}
}
