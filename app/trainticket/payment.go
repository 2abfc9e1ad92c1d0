package trainticket

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// payment is money that was paid from outside for an order, or given back for it.
type payment struct {
	OrderID string    `bson:"_id" json:"orderId"`
	UserID  string    `bson:"userId" json:"userId"`
	Price   string    `bson:"price" json:"price"`
	Time    time.Time `bson:"time" json:"time"`
	Kind    string    `bson:"type" json:"type,omitempty"` // of an entry in an account
}

// Kinds of payments.
const (
	fromBalance = "BALANCE"
	fromOutside = "OUTSIDE"
	givenBack   = "DRAWBACK"
)

// paymentPart takes money from outside.
var paymentPart = part{"ts-payment-service", "ts", empty("payment"), func(_ context.Context, s *server) error {
	const base = "/api/v1/paymentservice/payment"
	handle(s, "POST "+base, base, func(r *http.Request, in payment) (payment, error) {
		if _, err := readMoney(in.Price); err != nil || in.OrderID == "" || in.UserID == "" {
			return in, refuse(http.StatusBadRequest, "want an orderId, a userId, and a price such as 95.00")
		}
		in.Time, in.Kind = time.Now().UTC().Truncate(time.Millisecond), fromOutside
		return in, insert(r.Context(), s, "payment", in, func() error { return nil })
	})
	handle(s, "GET "+base+"/{id}", base+"/id", func(r *http.Request, _ struct{}) (payment, error) {
		id := r.PathValue("id")
		return findOne[payment](r.Context(), s, "payment", bson.M{"_id": id}, "payment for order "+id)
	})
	return nil
}}

// payRequest asks to pay for an order.
type payRequest struct {
	OrderID string `json:"orderId"`
	UserID  string `json:"userId"`
}

// insidePart has the accounts of users, and pays from them.
var insidePart = part{"ts-inside-payment-service", "ts", balanceSeed, func(_ context.Context, s *server) error {
	const base = "/api/v1/inside_pay_service/inside_payment"
	a := &accounts{s}
	s.Recall(a.recall)
	handle(s, "POST "+base, base, a.pay)
	const account = base + "/account"
	handle(s, "GET "+account+"/{id}", account, func(r *http.Request, _ struct{}) (map[string]string, error) {
		id := r.PathValue("id")
		if err := own(r, id); err != nil {
			return nil, err
		}
		b, err := findOne[balance](r.Context(), s, "balance", bson.M{"_id": id}, "account of "+id)
		if _, none := errors.AsType[*refusal](err); none {
			err = nil
		}
		return map[string]string{"userId": id, "balance": money(b.Cents)}, err
	})
	handle(s, "POST "+base+"/drawback", base+"/drawback", a.giveBack)
	return nil
}}

type accounts struct{ s *server }

// pay pays for an order: from the account if there is enough in it, else from outside.
func (a *accounts) pay(r *http.Request, in payRequest) (payment, error) {
	ctx := r.Context()
	if err := own(r, in.UserID); err != nil {
		return payment{}, err
	}
	o, err := call[order](ctx, a.s, "ts-order-service", http.MethodGet,
		"/api/v1/orderservice/order/"+url.PathEscape(in.OrderID), nil)
	if err != nil {
		return payment{}, err
	}
	if o.AccountID != in.UserID || o.Status != notPaid && o.Status != paid {
		return payment{}, refuse(http.StatusConflict, "order %s cannot be paid", in.OrderID)
	}
	price, err := readMoney(o.Price)
	if err != nil {
		return payment{}, err
	}
	p := payment{o.ID, in.UserID, o.Price, time.Now().UTC().Truncate(time.Millisecond), fromBalance}
	enough, err := a.take(ctx, p, price)
	if err != nil {
		return p, err
	}
	if !enough {
		p.Kind = fromOutside
		_, err := call[payment](ctx, a.s, "ts-payment-service", http.MethodPost, "/api/v1/paymentservice/payment", p)
		if err != nil {
			return p, err
		}
	}
	_, err = call[order](ctx, a.s, "ts-order-service", http.MethodPut,
		"/api/v1/orderservice/order/"+url.PathEscape(o.ID)+"/status", change{[]int{notPaid}, paid})
	if err == nil {
		a.s.Log.InfoContext(ctx, "Paid", slog.String("order", o.ID), slog.String("price", o.Price),
			slog.String("type", p.Kind))
	}
	return p, err
}

// take takes money from an account, once for each order, if there is enough.
func (a *accounts) take(ctx context.Context, p payment, cents int64) (bool, error) {
	enough := false
	err := a.s.Store(ctx, "mongodb", "findAndModify balance", func(ctx context.Context) error {
		err := a.s.db.Collection("balance").FindOneAndUpdate(ctx,
			bson.M{"_id": p.UserID, "cents": bson.M{"$gte": cents}, "orders": bson.M{"$ne": p.OrderID}},
			bson.M{"$inc": bson.M{"cents": -cents}, "$push": bson.M{"orders": p.OrderID}}).Err()
		enough = err == nil
		return err
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		n := int64(0)
		err = a.s.Store(ctx, "mongodb", "count balance", func(ctx context.Context) (err error) {
			n, err = a.s.db.Collection("balance").CountDocuments(ctx, bson.M{"_id": p.UserID, "orders": p.OrderID})
			return err
		})
		return n > 0, err // It was taken before.
	}
	return enough, err
}

// giveBack puts money for an order that was canceled into an account, once.
func (a *accounts) giveBack(r *http.Request, in payment) (payment, error) {
	cents, err := readMoney(in.Price)
	if err != nil || in.OrderID == "" || in.UserID == "" {
		return in, refuse(http.StatusBadRequest, "want an orderId, a userId, and a price such as 95.00")
	}
	in.Kind, in.Time = givenBack, time.Now().UTC().Truncate(time.Millisecond)
	back := in.OrderID + " back"
	return in, a.s.Store(r.Context(), "mongodb", "update balance", func(ctx context.Context) error {
		_, err := a.s.db.Collection("balance").UpdateOne(ctx,
			bson.M{"_id": in.UserID, "orders": bson.M{"$ne": back}},
			bson.M{"$inc": bson.M{"cents": cents}, "$push": bson.M{"orders": back}},
			options.UpdateOne().SetUpsert(true))
		if mongo.IsDuplicateKeyError(err) {
			return nil // It is there already.
		}
		return err
	})
}

// drawbackPercent is how much of the price is given back.
const drawbackPercent = 80

// cancelPart cancels orders.
var cancelPart = part{name: "ts-cancel-service", start: func(_ context.Context, s *server) error {
	const base = "/api/v1/cancelservice/cancel"
	handle(s, "GET "+base+"/{order}/{login}", base, func(r *http.Request, _ struct{}) (map[string]string, error) {
		ctx, id := r.Context(), r.PathValue("order")
		if err := own(r, r.PathValue("login")); err != nil {
			return nil, err
		}
		o, err := call[order](ctx, s, "ts-order-service", http.MethodGet,
			"/api/v1/orderservice/order/"+url.PathEscape(id), nil)
		if err != nil {
			return nil, err
		}
		if err := own(r, o.AccountID); err != nil {
			return nil, err
		}
		was, err := call[order](ctx, s, "ts-order-service", http.MethodPut,
			"/api/v1/orderservice/order/"+url.PathEscape(id)+"/status", change{[]int{notPaid, paid}, canceled})
		if err != nil {
			return nil, err
		}
		back := int64(0)
		if was.Status == paid {
			price, err := readMoney(was.Price)
			if err != nil {
				return nil, err
			}
			back = price * drawbackPercent / 100
			_, err = call[payment](ctx, s, "ts-inside-payment-service", http.MethodPost,
				"/api/v1/inside_pay_service/inside_payment/drawback",
				payment{OrderID: id, UserID: o.AccountID, Price: money(back)})
			if err != nil {
				return nil, err
			}
		}
		s.Log.InfoContext(ctx, "Canceled", slog.String("order", id), slog.String("back", money(back)))
		return map[string]string{"orderId": id, "refund": money(back)}, nil
	})
	return nil
}}
