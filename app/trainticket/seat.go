package trainticket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
)

// seatInfo asks for seats of a trip. Economy and Confort are how many the train has.
type seatInfo struct {
	TravelDate  string `json:"travelDate"`
	TrainNumber string `json:"trainNumber"`
	SeatType    int    `json:"seatType,omitempty"`
	Economy     int    `json:"totalEconomyClass"`
	Confort     int    `json:"totalConfortClass"`
}

// seatsLeft are how many seats are left, and ticket is one of them.
type seatsLeft struct {
	Economy int `json:"economyClass"`
	Confort int `json:"confortClass"`
}

type ticket struct {
	SeatNo int `json:"seatNo"`
}

// seatPart finds seats that nobody has.
var seatPart = part{name: "ts-seat-service", start: func(_ context.Context, s *server) error {
	const base = "/api/v1/seatservice/seats"
	const left = base + "/left_tickets"
	handle(s, "POST "+left, left, func(r *http.Request, in seatInfo) (seatsLeft, error) {
		sold, err := soldTickets(r.Context(), s, in)
		return seatsLeft{
			max(in.Economy-len(sold.Economy), 0), max(in.Confort-len(sold.Confort), 0),
		}, err
	})
	handle(s, "POST "+base, base, func(r *http.Request, in seatInfo) (ticket, error) {
		sold, err := soldTickets(r.Context(), s, in)
		if err != nil {
			return ticket{}, err
		}
		total, taken := in.Economy, sold.Economy
		if in.SeatType == firstClass {
			total, taken = in.Confort, sold.Confort
		}
		return freeSeat(total, taken)
	})
	return nil
}}

func soldTickets(ctx context.Context, s *server, in seatInfo) (soldSeats, error) {
	return call[soldSeats](ctx, s, "ts-order-service", http.MethodGet,
		fmt.Sprintf("/api/v1/orderservice/order/tickets/%s/%s",
			url.PathEscape(in.TrainNumber), url.PathEscape(in.TravelDate)), nil)
}

// freeSeat draws one of the seats that are not taken, so that two who ask at once hardly get the same.
func freeSeat(total int, taken []int) (ticket, error) {
	had := make(map[int]bool, len(taken))
	for _, n := range taken {
		had[n] = true
	}
	var free []int
	for n := 1; n <= min(total, 10_000); n++ {
		if !had[n] {
			free = append(free, n)
		}
	}
	if len(free) == 0 {
		return ticket{}, refuse(http.StatusConflict, "Seat Not Enough")
	}
	return ticket{free[rand.IntN(len(free))]}, nil
}
