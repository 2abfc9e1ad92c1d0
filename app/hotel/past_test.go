package hotel

import (
	"bytes"
	"fmt"
	"io/fs"
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
	old, drawn := 0, map[string]int{}
	for i, b := range list {
		at := b.ID.Timestamp()
		if at.After(p.Began) || join.Sub(at) > 20*24*time.Hour+time.Second || i > 0 && at.Before(list[i-1].ID.Timestamp()) {
			t.Fatalf("booking %d is of %v", i, at)
		}
		if b.Booking.InDate >= b.Booking.OutDate {
			t.Fatalf("a stay from %s to %s", b.Booking.InDate, b.Booking.OutDate)
		}
		drawn[b.Booking.InDate[:4]]++
		if join.Sub(at) > 24*time.Hour {
			old++
		}
	}
	if old < 20 || len(list) < 100 || len(list) > 1500 {
		t.Errorf("%d bookings, %d older than a day", len(list), old)
	}
	if len(drawn) != 11 {
		t.Errorf("bookings of the years %v", drawn)
	}
}

// TestBookingsAreAsUsersMakeThem holds that what was booked in the past cannot be told from what users book now by its dates,
// its hotel, or its guest: both are drawn alike.
func TestBookingsAreAsUsersMakeThem(t *testing.T) {
	first := time.Date(2015, time.March, 31, 0, 0, 0, 0, time.UTC) // of the mixes' days
	from, to := int(bookedFrom.Sub(first).Hours()/24), int(bookedFrom.Sub(first).Hours()/24)+bookedDays-1
	for _, name := range []string{"hotel-mixed", "hotel-booking"} {
		b, err := fs.ReadFile(App().Mixes, name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			fmt.Sprintf("in: '{{int %d %d}}'", from, to), "out: '{{add .in (int 1 5)}}'",
			fmt.Sprintf("id: '{{int 0 %d}}'", userCount-1),
			fmt.Sprintf("hotel: '{{add .third (mul 3 (int %d %d))}}'", firstBooked/3, (firstBooked+bookedHotels)/3-1),
		} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s does not have %q", name, want)
			}
		}
	}
	join := time.Now()
	hotels, stays := map[string]bool{}, map[time.Duration]bool{}
	for seed := range uint64(20) {
		p := past.New(seed, join.Add(-time.Second), join, past.Cast{})
		for _, b := range bookingsBefore(p, rand.New(rand.NewPCG(seed, 1))) {
			in, _ := time.Parse(time.DateOnly, b.Booking.InDate)
			out, _ := time.Parse(time.DateOnly, b.Booking.OutDate)
			stays[out.Sub(in)/(24*time.Hour)], hotels[b.Booking.HotelID] = true, true
			if in.Before(bookedFrom) || in.After(first.AddDate(0, 0, to)) {
				t.Fatalf("somebody comes on %v", in)
			}
		}
	}
	if len(stays) != 5 || len(hotels) != bookedHotels {
		t.Errorf("stays of %v nights in %d hotels", stays, len(hotels))
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
	if !strings.HasPrefix(got, "2026-11-16T15:20:03Z INF hotel/reservation.go:") ||
		!strings.HasSuffix(got, "> Reserved hotel=9 customer=Cornell_1 in=2015-04-09 out=2015-04-10 rooms=1") {
		t.Errorf("it is logged as %q", got)
	}
}
