package trainticket

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
)

// seatTries is how many seats are tried: another may be faster.
const seatTries = 5

// bookingRequest asks for a seat.
type bookingRequest struct {
	AccountID string `json:"accountId"`
	TripID    string `json:"tripId"`
	SeatType  int    `json:"seatType"`
	Date      string `json:"date"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// mail is what somebody is told of a booking.
type mail struct {
	OrderNumber   string `bson:"_id" json:"orderNumber"`
	AccountID     string `bson:"accountId" json:"accountId"`
	Username      string `bson:"username" json:"username"`
	Email         string `bson:"email" json:"email"`
	StartingPlace string `bson:"startingPlace" json:"startingPlace"`
	EndPlace      string `bson:"endPlace" json:"endPlace"`
	StartingTime  string `bson:"startingTime" json:"startingTime"`
	Date          string `bson:"date" json:"date"`
	SeatClass     int    `bson:"seatClass" json:"seatClass"`
	SeatNumber    int    `bson:"seatNumber" json:"seatNumber"`
	Price         string `bson:"price" json:"price"`
}

// preservePart books seats.
var preservePart = part{name: "ts-preserve-service", start: func(ctx context.Context, s *server) error {
	post, err := openPost(ctx, s)
	if err != nil {
		return err
	}
	p := &preserve{s, post}
	handle(s, "POST /api/v1/preserveservice/preserve", "/api/v1/preserveservice/preserve", p.preserve)
	return nil
}}

type preserve struct {
	s    *server
	post *post
}

// preserve books a seat for the user who asks, and has a mail sent. A request that comes twice books once: its number
// is that of the order.
func (p *preserve) preserve(r *http.Request, in bookingRequest) (order, error) {
	ctx, s := r.Context(), p.s
	if err := own(r, in.AccountID); err != nil {
		return order{}, err
	}
	id := r.Header.Get(requestHeader)
	if id == "" || len(id) > 64 || in.SeatType != firstClass && in.SeatType != secondClass {
		return order{}, refuse(http.StatusBadRequest, "want a request number, and a seatType of %d or %d", firstClass,
			secondClass)
	}
	who, err := call[person](ctx, s, "ts-user-service", http.MethodGet,
		"/api/v1/userservice/users/id/"+in.AccountID, nil)
	if err != nil {
		return order{}, err
	}
	trip, err := call[offer](ctx, s, "ts-travel-service", http.MethodPost, "/api/v1/travelservice/trip_detail",
		travelInfo{in.From, in.To, in.Date, in.TripID})
	if err != nil {
		return order{}, err
	}
	price := trip.PriceForEconomyClass
	if in.SeatType == firstClass {
		price = trip.PriceForConfortClass
	}
	o, err := p.book(ctx, order{
		ID: id, TravelDate: in.Date, TravelTime: trip.StartingTime, AccountID: in.AccountID, ContactsName: who.Name,
		DocumentNumber: who.DocumentNum, TrainNumber: in.TripID, SeatClass: in.SeatType, From: in.From, To: in.To,
		Price: price,
	}, trip)
	if err != nil {
		return order{}, err
	}
	p.post.send(ctx, mail{
		OrderNumber: o.ID, AccountID: o.AccountID, Username: who.Name, Email: who.Email, StartingPlace: o.From,
		EndPlace: o.To, StartingTime: o.TravelTime, Date: o.TravelDate, SeatClass: o.SeatClass,
		SeatNumber: o.SeatNumber, Price: o.Price,
	})
	return o, nil
}

// book finds a seat and makes the order. A seat that somebody else was faster to get is not taken.
func (p *preserve) book(ctx context.Context, o order, trip offer) (order, error) {
	for n := 0; ; n++ {
		t, err := call[ticket](ctx, p.s, "ts-seat-service", http.MethodPost, "/api/v1/seatservice/seats", seatInfo{
			TravelDate: o.TravelDate, TrainNumber: o.TrainNumber, SeatType: o.SeatClass, Economy: trip.TotalEconomy,
			Confort: trip.TotalConfort,
		})
		if err != nil {
			return o, err
		}
		o.SeatNumber = t.SeatNo
		made, err := call[order](ctx, p.s, "ts-order-service", http.MethodPost, "/api/v1/orderservice/order", o)
		no, refused := errors.AsType[*refusal](err)
		if refused && no.code == http.StatusConflict && n < seatTries && strings.HasPrefix(no.msg, "seat ") {
			p.s.Log.InfoContext(ctx, "Seat taken, try another", slog.Int("seat", t.SeatNo))
			continue
		}
		return made, err
	}
}
