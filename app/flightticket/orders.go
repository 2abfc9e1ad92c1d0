package flightticket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/aiopslab/aiopslab/app/flightticket/whisk"
	"github.com/aiopslab/aiopslab/app/service"
)

// What has become of an order.
const (
	notPaid   = 0
	paid      = 1
	collected = 2
	cancelled = 3
)

// order is a seat on a flight for somebody.
type order struct {
	ID         string `json:"id"`
	BoughtDate string `json:"boughtDate"`
	TravelDate string `json:"travelDate"`
	AccountID  string `json:"accountId"`
	Trip       int    `json:"tripId"`
	SeatClass  string `json:"seatClass"` // FIRST or ECONOMY
	SeatNo     int    `json:"seatNo"`
	From       int    `json:"stFrom"`
	To         int    `json:"stTo"`
	Price      int    `json:"price"` // in cents
	Status     int    `json:"stat"`
}

// ticket is a seat that is sold.
type ticket struct {
	SeatNo  int    `json:"seatNo"`
	OrderID string `json:"orderId"`
}

// Seats of the first class come before those of the economy class.
const (
	first, economy = "FIRST", "ECONOMY"
	maxAccount     = 64
	// retries is how often a seat is looked for, if another gets the same one. That cannot be, unless the store has
	// lost what it knew.
	retries = 20
)

// check checks what somebody wants to book.
func (o *order) check() error {
	if _, err := time.Parse(time.DateOnly, o.TravelDate); err != nil {
		return whisk.Refusal("travelDate must be a date such as 2015-04-09")
	}
	if o.Trip < 1 || o.Trip > trips || o.SeatClass != first && o.SeatClass != economy || o.AccountID == "" ||
		len(o.AccountID) > maxAccount {
		return whisk.Refusal(fmt.Sprintf("want a tripId up to %d, a seatClass of %s and %s, and an accountId", trips,
			first, economy))
	}
	return nil
}

// seats are the numbers of the first and the last seat of a class.
func (a aircraft) seats(class string) (from, to int) {
	if class == first {
		return 1, a.ComfortClass
	}
	return a.ComfortClass + 1, a.ComfortClass + a.EconomyClass
}

// book takes a seat on a flight and writes the order. No seat is sold twice: a ticket is written only if there is none
// for that seat, whoever else sells at the same time.
func (st *store) book(ctx context.Context, o *order) error {
	var t trip
	var r route
	var kind aircraft
	var p price
	if err := st.record(ctx, tripsKey, strconv.Itoa(o.Trip), &t); err != nil {
		return err
	}
	if err := st.record(ctx, routesKey, strconv.Itoa(t.Route), &r); err != nil {
		return err
	}
	if err := st.record(ctx, typesKey, strconv.Itoa(t.Type), &kind); err != nil {
		return err
	}
	if err := st.record(ctx, pricesKey, fmt.Sprintf("%d:%d", t.Route, t.Type), &p); err != nil {
		return err
	}
	rate := p.Basic
	if o.SeatClass == first {
		rate = p.First
	}
	var id [12]byte
	_, _ = rand.Read(id[:]) // It never fails.
	o.ID, o.Status, o.BoughtDate = hex.EncodeToString(id[:]), notPaid, time.Now().UTC().Format(time.RFC3339)
	o.From, o.To, o.Price = r.Stations[0], r.Stations[stops-1], r.Distances[stops-1]*rate
	for range retries {
		seat, err := st.seat(ctx, o, kind)
		if err != nil {
			return err
		}
		won, err := redis.Int(st.do(ctx, service.Command{"HSETNX", ticketsKey(o.Trip, o.TravelDate), seat, o.ID}))
		if err != nil {
			return err
		}
		if won == 1 {
			o.SeatNo = seat
			return st.put(ctx, o)
		}
	}
	return fmt.Errorf("no seat could be had on trip %d of %s", o.Trip, o.TravelDate)
}

// seat is a seat that may be free: one that was given back, or the next one.
func (st *store) seat(ctx context.Context, o *order, kind aircraft) (int, error) {
	left, err := redis.Int(st.do(ctx, service.Command{"LPOP", leftKey(o.Trip, o.TravelDate, o.SeatClass)}))
	if err == nil || err != redis.ErrNil {
		return left, err
	}
	from, to := kind.seats(o.SeatClass)
	n, err := redis.Int(st.do(ctx, service.Command{"INCR", nextKey(o.Trip, o.TravelDate, o.SeatClass)}))
	if err != nil {
		return 0, err
	}
	if from+n-1 > to {
		return 0, whisk.Refusal(fmt.Sprintf("trip %d of %s has no seats left in this class", o.Trip, o.TravelDate))
	}
	return from + n - 1, nil
}

func (st *store) put(ctx context.Context, o *order) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = st.do(ctx, service.Command{"HSET", ordersKey, o.ID, b})
	return err
}

// find reads an order; ok is false if there is none.
func (st *store) find(ctx context.Context, id string) (o order, ok bool, err error) {
	text, err := st.text(ctx, ordersKey, id)
	if err != nil || text == "" {
		return o, false, err
	}
	return o, true, json.Unmarshal([]byte(text), &o)
}

// change gives an order another status, and gives its seat back if it is cancelled. It reports whether it did: not
// everything can become everything, and of two who cancel an order only one gives its seat back.
func (st *store) change(ctx context.Context, o order, status int) (bool, error) {
	if o.Status == cancelled || status <= o.Status || status > cancelled {
		return false, nil
	}
	if status == cancelled {
		gone, err := redis.Int(st.do(ctx, service.Command{"HDEL", ticketsKey(o.Trip, o.TravelDate), o.SeatNo}))
		if err != nil || gone == 0 {
			return false, err
		}
		if _, err := st.do(ctx, service.Command{
			"RPUSH", leftKey(o.Trip, o.TravelDate, o.SeatClass), o.SeatNo,
		}); err != nil {
			return false, err
		}
	}
	o.Status = status
	return true, st.put(ctx, &o)
}

// logBooked logs an order at a time, from one place for all times.
func logBooked(log *slog.Logger, at time.Time, o order) {
	service.LogAt(log, slog.LevelInfo, at, "Booked", "order", o.ID, "trip", o.Trip, "date", o.TravelDate,
		"seat", o.SeatNo)
}
