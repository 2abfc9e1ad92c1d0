package trainticket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/app/service"
)

// States of an order, as the original numbers them.
const (
	notPaid  = 0
	paid     = 1
	canceled = 4
)

// maxOrders is how many orders somebody is shown, the latest.
const maxOrders = 50

// order is a seat that somebody has booked.
type order struct {
	ID             string    `bson:"_id" json:"id"`
	BoughtDate     time.Time `bson:"boughtDate" json:"boughtDate"`
	TravelDate     string    `bson:"travelDate" json:"travelDate"`
	TravelTime     string    `bson:"travelTime" json:"travelTime"`
	AccountID      string    `bson:"accountId" json:"accountId"`
	ContactsName   string    `bson:"contactsName" json:"contactsName"`
	DocumentNumber string    `bson:"contactsDocumentNumber" json:"contactsDocumentNumber"`
	TrainNumber    string    `bson:"trainNumber" json:"trainNumber"`
	SeatClass      int       `bson:"seatClass" json:"seatClass"`
	SeatNumber     int       `bson:"seatNumber" json:"seatNumber"`
	From           string    `bson:"from" json:"from"`
	To             string    `bson:"to" json:"to"`
	Status         int       `bson:"status" json:"status"`
	Price          string    `bson:"price" json:"price"`
}

// sale is a seat that is sold. There is one document for each, so that no seat is sold twice.
type sale struct {
	ID    string `bson:"_id"`
	Trip  string `bson:"trip"` // train number and date
	Class int    `bson:"class"`
	Seat  int    `bson:"seat"`
	Order string `bson:"order"`
}

func (o order) sale() sale {
	at := o.TrainNumber + "/" + o.TravelDate
	return sale{fmt.Sprintf("%s/%d/%d", at, o.SeatClass, o.SeatNumber), at, o.SeatClass, o.SeatNumber, o.ID}
}

// soldSeats are the numbers of the seats of a trip that are sold.
type soldSeats struct {
	Economy []int `json:"economyClass"`
	Confort []int `json:"confortClass"`
}

// change is a change of an order's state.
type change struct {
	From []int `json:"from"` // what it must be before
	To   int   `json:"to"`
}

// orderPart keeps the orders.
var orderPart = part{"ts-order-service", "ts-order-mongo", empty("orders"), func(ctx context.Context, s *server) error {
	const base = "/api/v1/orderservice/order"
	if err := index(ctx, s, map[string]string{"orders": "accountId", "sales": "trip"}); err != nil {
		return err
	}
	b := &orders{s}
	s.Recall(b.recall)
	handle(s, "POST "+base, base, b.create)
	handle(s, "POST "+base+"/refresh", base+"/refresh", b.refresh)
	handle(s, "GET "+base+"/{id}", base+"/id", func(r *http.Request, _ struct{}) (order, error) {
		return b.find(r.Context(), r.PathValue("id"))
	})
	handle(s, "PUT "+base+"/{id}/status", base+"/id/status", b.change)
	handle(s, "GET "+base+"/tickets/{train}/{date}", base+"/tickets", b.sold)
	return nil
}}

// index makes indexes of collections, each by one field.
func index(ctx context.Context, s *server, fields map[string]string) error {
	for collection, field := range fields {
		by := mongo.IndexModel{Keys: bson.D{{Key: field, Value: 1}}}
		_, err := s.db.Collection(collection).Indexes().CreateOne(ctx, by)
		if err != nil {
			return err
		}
	}
	return nil
}

// orders are the orders in the store.
type orders struct{ s *server }

func (b *orders) find(ctx context.Context, id string) (order, error) {
	return findOne[order](ctx, b.s, "orders", bson.M{"_id": id}, fmt.Sprintf("order %q", id))
}

// create writes an order. It may be asked twice: an order that is there already is the answer.
func (b *orders) create(r *http.Request, in order) (order, error) {
	ctx := r.Context()
	if in.ID == "" || in.AccountID == "" || in.TrainNumber == "" || in.SeatNumber < 1 {
		return in, refuse(http.StatusBadRequest, "want an order with id, accountId, trainNumber and seatNumber")
	}
	if had, err := b.find(ctx, in.ID); err == nil {
		return had, nil
	} else if _, unknown := errors.AsType[*refusal](err); !unknown {
		return in, err
	}
	in.Status, in.BoughtDate = notPaid, time.Now().UTC().Truncate(time.Millisecond)
	seat := in.sale()
	err := insert(ctx, b.s, "sales", seat, func() error {
		had, err := findOne[sale](ctx, b.s, "sales", bson.M{"_id": seat.ID}, "sale of "+seat.ID)
		if err == nil && had.Order != in.ID {
			err = refuse(http.StatusConflict, "seat %d of %s is sold", in.SeatNumber, in.TrainNumber)
		}
		return err
	})
	if err != nil {
		return in, err
	}
	if err := insert(ctx, b.s, "orders", in, func() error { return nil }); err != nil {
		return in, errors.Join(err, b.free(ctx, in))
	}
	logOrder(b.s.Log, in.BoughtDate, in)
	return in, nil
}

// free gives the seat of an order back, even if the caller has gone.
func (b *orders) free(ctx context.Context, o order) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.StoreTimeout)
	defer cancel()
	return b.s.Store(ctx, "mongodb", "delete sales", func(ctx context.Context) error {
		_, err := b.s.db.Collection("sales").DeleteOne(ctx, bson.M{"_id": o.sale().ID, "order": o.ID})
		return err
	})
}

// refresh returns the orders of an account, the latest first.
func (b *orders) refresh(r *http.Request, in struct {
	LoginID string `json:"loginId"`
},
) (list []order, err error) {
	if err := own(r, in.LoginID); err != nil {
		return nil, err
	}
	list = []order{}
	err = b.s.Store(r.Context(), "mongodb", "find orders", func(ctx context.Context) error {
		cursor, err := b.s.db.Collection("orders").Find(ctx, bson.M{"accountId": in.LoginID},
			options.Find().SetSort(bson.D{{Key: "boughtDate", Value: -1}}).SetLimit(maxOrders))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &list)
	})
	return list, err
}

// change changes the state of an order, if it is one of those that it may be. It returns the order as it was. The seat
// of one that is canceled is free.
func (b *orders) change(r *http.Request, in change) (was order, err error) {
	ctx, id := r.Context(), r.PathValue("id")
	err = b.s.Store(ctx, "mongodb", "findAndModify orders", func(ctx context.Context) error {
		return b.s.db.Collection("orders").FindOneAndUpdate(ctx,
			bson.M{"_id": id, "status": bson.M{"$in": in.From}}, bson.M{"$set": bson.M{"status": in.To}},
			options.FindOneAndUpdate().SetReturnDocument(options.Before)).Decode(&was)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		if was, err = b.find(ctx, id); err == nil && was.Status != in.To {
			err = refuse(http.StatusConflict, "order %s is in state %d", id, was.Status)
		}
		return was, err
	}
	if err == nil && in.To == canceled {
		err = b.free(ctx, was)
	}
	return was, err
}

// sold returns the seats of a trip that are sold.
func (b *orders) sold(r *http.Request, _ struct{}) (soldSeats, error) {
	sales, err := service.FindAll[sale](r.Context(), b.s.Service, b.s.db.Collection("sales"),
		bson.M{"trip": r.PathValue("train") + "/" + r.PathValue("date")})
	sold := soldSeats{[]int{}, []int{}}
	for _, one := range sales {
		if one.Class == firstClass {
			sold.Confort = append(sold.Confort, one.Seat)
		} else {
			sold.Economy = append(sold.Economy, one.Seat)
		}
	}
	return sold, err
}

// logOrder logs an order at a time, from one place for all times.
func logOrder(log *slog.Logger, at time.Time, o order) {
	service.LogAt(log, slog.LevelInfo, at, "Order created", "order", o.ID, "train", o.TrainNumber, "date",
		o.TravelDate, "seat", o.SeatNumber, "price", o.Price)
}

// orderLine is what was logged of an order.
func orderLine(at time.Time, o order) string {
	return service.Logged(func(log *slog.Logger) { logOrder(log, at, o) })
}
