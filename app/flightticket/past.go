package flightticket

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// keeper is the function that knows the orders of the past.
	keeper = "save-order-info"
	// orderRate is how many orders users make in a second, about.
	orderRate = 0.5
	// Users of the mix book flights of the first bookedTrips trips, on one of bookedDays days from bookedFrom on.
	bookedTrips, bookedDays = 20, 30
)

var bookedFrom = time.Date(2015, time.April, 1, 0, 0, 0, 0, time.UTC)

// ordersBefore draws the orders of the past, the first one first. Their seats are the last ones of the economy class,
// each sold once; users get those from the front.
func ordersBefore(p *past.Past, r *rand.Rand) (list []order) {
	times := p.Fade(r, p.Began, orderRate, service.Grown)
	slices.Reverse(times)
	sold := map[string]int{}
	for _, t := range times {
		var id [12]byte
		for i := range id {
			id[i] = byte(r.Uint32())
		}
		trip := tripOf(1 + r.IntN(bookedTrips))
		route, rate := routeOf(trip.Route), priceOf(trip.Route, trip.Type)
		o := order{
			ID: hex.EncodeToString(id[:]), BoughtDate: t.UTC().Format(time.RFC3339),
			TravelDate: bookedFrom.AddDate(0, 0, r.IntN(bookedDays)).Format(time.DateOnly),
			AccountID:  fmt.Sprintf("user-%d", 1+r.IntN(500)), Trip: trip.ID, SeatClass: economy,
			From: route.Stations[0], To: route.Stations[stops-1],
			Price: route.Distances[stops-1] * rate.Basic, Status: paid,
		}
		flight := ticketsKey(o.Trip, o.TravelDate)
		from, to := aircraftOf(trip.Type).seats(economy)
		if o.SeatNo = to - sold[flight]; o.SeatNo < from+(to-from)/2 {
			continue // It is half full by now.
		}
		sold[flight]++
		list = append(list, o)
	}
	return list
}

// recall writes the orders of the past, and says what was logged of them.
func (f *function) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	list := ordersBefore(p, r)
	if len(list) == 0 {
		return nil
	}
	if _, ok, err := f.find(ctx, list[0].ID); err != nil || ok { // Another pod has written them.
		return err
	}
	var commands []service.Command
	for _, o := range list {
		b, err := json.Marshal(o)
		if err != nil {
			return err
		}
		commands = append(commands, service.Command{"HSETNX", ticketsKey(o.Trip, o.TravelDate), o.SeatNo, o.ID},
			service.Command{"HSET", ordersKey, o.ID, b})
	}
	if _, err := f.redis.Do(ctx, commands...); err != nil {
		return err
	}
	for _, o := range slices.Backward(list) {
		at, err := time.Parse(time.RFC3339, o.BoughtDate)
		if err != nil || p.Log == nil || !p.Log(at, bookedLine(at, o)) {
			break
		}
	}
	return nil
}

// bookedLine is what was logged of an order.
func bookedLine(at time.Time, o order) string {
	return service.Logged(func(log *slog.Logger) { logBooked(log, at, o) })
}
