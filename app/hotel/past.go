package hotel

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// bookingRate is how many bookings users make in a second, about.
	bookingRate = 0.5
	// bookedDays are in how many days the nights are that users book, from bookedFrom on, and bookedHotels the hotels,
	// from firstBooked on: those of the mixes.
	bookedDays                = 3631
	firstBooked, bookedHotels = 9, 72
)

var bookedFrom = time.Date(2015, time.April, 30, 0, 0, 0, 0, time.UTC)

// dated is a booking with the ID that its time gives it.
type dated struct {
	ID      bson.ObjectID `bson:"_id"`
	Booking booking       `bson:",inline"`
}

// bookingsBefore draws the bookings of the past, the first one first.
func bookingsBefore(p *past.Past, r *rand.Rand) (list []dated) {
	times := p.Fade(r, p.Began, bookingRate, service.Grown)
	slices.Reverse(times)
	ids := service.NewIDs(r)
	for _, t := range times {
		in := bookedFrom.AddDate(0, 0, r.IntN(bookedDays))
		list = append(list, dated{ids.At(t), booking{
			HotelID:      fmt.Sprint(firstBooked + r.IntN(bookedHotels)),
			CustomerName: fmt.Sprintf("Cornell_%d", r.IntN(userCount)),
			InDate:       in.Format(time.DateOnly),
			OutDate:      in.AddDate(0, 0, 1+r.IntN(5)).Format(time.DateOnly), Number: 1,
		}})
	}
	return list
}

// recall writes the bookings of the past, takes the rooms of their nights, and says what was logged of them.
func (r *reservation) recall(ctx context.Context, p *past.Past, random *rand.Rand) error {
	list := bookingsBefore(p, random)
	n, err := r.reservations.CountDocuments(ctx, bson.M{"_id": list[0].ID})
	if err != nil || n > 0 { // Another replica has written them.
		return err
	}
	var docs []any
	var nights []mongo.WriteModel
	for _, b := range list {
		docs = append(docs, b)
		for d, _ := time.Parse(time.DateOnly, b.Booking.InDate); ; d = d.AddDate(0, 0, 1) {
			date := d.Format(time.DateOnly)
			if date == b.Booking.OutDate {
				break
			}
			nights = append(nights, mongo.NewUpdateOneModel().SetUpsert(true).
				SetFilter(bson.M{"_id": nightID(b.Booking.HotelID, date)}).SetUpdate(bson.M{
				"$inc":         bson.M{"taken": b.Booking.Number},
				"$setOnInsert": bson.M{"hotelId": b.Booking.HotelID, "date": date},
			}))
		}
	}
	if err := service.InsertAll(ctx, r.reservations, docs); err != nil {
		return err
	}
	if err := service.WriteAll(ctx, r.nights, nights); err != nil {
		return err
	}
	for _, b := range slices.Backward(list) {
		at := b.ID.Timestamp().Add(time.Duration(random.Int64N(int64(time.Second))))
		if p.Log == nil || !p.Log(at, bookedLine(at, b.Booking)) {
			break
		}
	}
	return nil
}

// bookedLine is what was logged of a booking.
func bookedLine(at time.Time, b booking) string {
	return service.Logged(func(log *slog.Logger) { logBooked(log, at, b) })
}
