package sockshop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	orderCost = 4 * time.Millisecond
	readCost  = 1500 * time.Microsecond
	// postage is what it costs to ship an order.
	postage   = 4.99
	maxOrders = 100
)

var ordersPart = part{
	name: "orders", flavour: java, port: 80, memory: 170 << 20, size: 198 << 20, tags: `0\.4\.7`, start: startOrders,
}

// newOrder says where the parts of an order are.
type newOrder struct {
	Customer string `json:"customer"`
	Address  string `json:"address"`
	Card     string `json:"card"`
	Items    string `json:"items"`
}

// order is one that was made.
type order struct {
	ID         string    `json:"id" bson:"_id"`
	CustomerID string    `json:"customerId" bson:"customerId"`
	Customer   object    `json:"customer" bson:"customer"`
	Address    object    `json:"address" bson:"address"`
	Card       object    `json:"card" bson:"card"`
	Items      []item    `json:"items" bson:"items"`
	Shipment   shipment  `json:"shipment" bson:"shipment"`
	Date       time.Time `json:"date" bson:"date"`
	Total      float64   `json:"total" bson:"total"`
}

type orders struct {
	s *server
	c *mongo.Collection
}

func startOrders(_ context.Context, s *server) error {
	db, err := s.mongo("orders-db", "data")
	if err != nil {
		return err
	}
	o := &orders{s, db.Collection("customerOrder")}
	s.Recall(o.recall)
	s.well("orders-db", ping(db))
	handle(s, "POST /orders", orderCost, http.StatusCreated, o.create)
	handle(s, "GET /orders", readCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		return o.list(r.Context(), bson.D{})
	})
	handle(s, "GET /orders/{id}", readCost, http.StatusOK, func(r *http.Request, _ struct{}) (order, error) {
		return o.find(r.Context(), r.PathValue("id"))
	})
	handle(s, "GET /orders/search/customerId", readCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		return o.list(r.Context(), bson.M{"customerId": r.URL.Query().Get("custId")})
	})
	return nil
}

func (o *orders) find(ctx context.Context, id string) (one order, err error) {
	err = o.s.Store(ctx, "mongodb", "find customerOrder", func(ctx context.Context) error {
		return o.c.FindOne(ctx, bson.M{"_id": id}).Decode(&one)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = refuse(http.StatusNotFound, "there is no order %.40q", id)
	}
	return one, err
}

// list returns orders, the latest first.
func (o *orders) list(ctx context.Context, filter any) (any, error) {
	list := []order{}
	err := o.s.Store(ctx, "mongodb", "find customerOrder", func(ctx context.Context) error {
		cursor, err := o.c.Find(ctx, filter,
			options.Find().SetSort(bson.D{{Key: "date", Value: -1}}).SetLimit(maxOrders))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &list)
	})
	return object{"_embedded": object{"customerOrders": list}}, err
}

// at refuses a place that is not of a service that has such things.
func at(place, host string) (string, error) {
	u, err := url.Parse(place)
	if err != nil || u.Scheme != "http" || u.Host != host {
		return "", refuse(http.StatusNotAcceptable,
			"Invalid order request. Order requires customer, address, card and items.")
	}
	return place, nil
}

// create makes an order: it gets its parts, has it paid and shipped, and keeps it.
func (o *orders) create(r *http.Request, in newOrder) (order, error) {
	made, err := o.gather(r, in)
	if err != nil {
		return made, err
	}
	if had, err := o.find(r.Context(), made.ID); err == nil { // The request came twice.
		return had, nil
	}
	ctx := numbered(r)
	paid, _, err := call[authorisation](ctx, o.s, http.MethodPost, "http://payment/paymentAuth", object{
		"address": made.Address, "card": made.Card, "customer": made.Customer, "amount": made.Total,
	})
	if err != nil {
		return made, fmt.Errorf("unable to get a payment: %w", err)
	}
	if !paid.Authorised {
		return made, refuse(http.StatusNotAcceptable, "%s", paid.Message)
	}
	made.Shipment, _, err = call[shipment](ctx, o.s, http.MethodPost, "http://shipping/shipping",
		shipment{made.ID, made.CustomerID})
	if err != nil {
		return made, fmt.Errorf("unable to ship: %w", err)
	}
	err = o.s.Store(ctx, "mongodb", "insert customerOrder", func(ctx context.Context) error {
		_, err := o.c.InsertOne(ctx, made)
		if mongo.IsDuplicateKeyError(err) {
			err = nil
		}
		return err
	})
	if err == nil {
		logOrder(o.s.Log, made.Date, made)
	}
	return made, err
}

// gather gets the parts of an order, all at once.
func (o *orders) gather(r *http.Request, in newOrder) (made order, err error) {
	made.ID, made.Date = requested(r).Hex(), time.Now().UTC().Truncate(time.Millisecond)
	group, ctx := errgroup.WithContext(numbered(r))
	for _, one := range []struct {
		place, host string
		into        any
	}{
		{in.Customer, "user", &made.Customer},
		{in.Address, "user", &made.Address},
		{in.Card, "user", &made.Card},
		{in.Items, "carts", &made.Items},
	} {
		place, err := at(one.place, one.host)
		if err != nil {
			return made, errors.Join(err, group.Wait())
		}
		group.Go(func() (err error) {
			switch into := one.into.(type) {
			case *object:
				*into, _, err = call[object](ctx, o.s, http.MethodGet, place, nil)
			case *[]item:
				*into, _, err = call[[]item](ctx, o.s, http.MethodGet, place, nil)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return made, err
	}
	made.CustomerID, _ = made.Customer["id"].(string)
	if len(made.Items) == 0 || made.CustomerID == "" {
		return made, refuse(http.StatusNotAcceptable, "Invalid order request. There is nothing in the cart.")
	}
	made.Total = total(made.Items)
	return made, nil
}

// total is what items cost, with the postage.
func total(items []item) float64 {
	all := postage
	for _, i := range items {
		all += float64(i.Quantity) * i.UnitPrice
	}
	return math.Round(all*100) / 100
}

// logOrder logs an order at a time, from one place for all times.
func logOrder(log *slog.Logger, at time.Time, o order) {
	service.LogAt(log, slog.LevelInfo, at, "Order created", "order", o.ID, "customer", o.CustomerID, "items",
		len(o.Items), "total", o.Total)
}
