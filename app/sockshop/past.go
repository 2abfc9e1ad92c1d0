package sockshop

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

// orderRate is how many orders customers make in a second, about.
const orderRate = 1.5

// sale is an order of the past, and who made it.
type sale struct {
	order   order
	buyer   customer
	address address
	card    card
}

// salesBefore draws the sales of the past, the first one first. Each is of a customer who came for it.
func salesBefore(p *past.Past, r *rand.Rand) (list []sale) {
	times := p.Fade(r, p.Began, orderRate, service.Grown)
	slices.Reverse(times)
	ids := service.NewIDs(r)
	for i, t := range times {
		t = t.UTC().Truncate(time.Millisecond)
		one := sale{
			buyer: customer{
				ID: ids.At(t.Add(-20 * time.Second)), FirstName: "Visitor", LastName: fmt.Sprint(r.IntN(10_000)),
				Username: "visitor_" + hash(fmt.Sprint(p.Seed, i))[:16], Salt: hash(fmt.Sprint(i, p.Seed)),
			},
			address: address{
				ID: ids.At(t.Add(-10 * time.Second)), Street: "Sock Lane", Number: fmt.Sprint(1 + r.IntN(200)),
				Country: "United Kingdom", City: "Leeds", PostCode: "LS1 4AP",
			},
			card: card{
				ID: ids.At(t.Add(-5 * time.Second)), LongNum: fmt.Sprintf("54%014d", r.Int64N(1e14)),
				Expires: "08/29", CCV: "123",
			},
		}
		one.buyer.Password = sum(one.buyer.Salt, hash(one.buyer.Username))
		one.buyer.Email = one.buyer.Username + "@example.com"
		one.address.Owner, one.card.Owner = one.buyer.ID.Hex(), one.buyer.ID.Hex()
		bought := socks[r.IntN(len(socks))]
		if bought.Price+postage > declineAbove {
			bought = socks[0]
		}
		items := []item{{
			ID: hash(one.buyer.ID.Hex() + "/" + bought.ID), ItemID: bought.ID, Quantity: 1 + r.IntN(3),
			UnitPrice: bought.Price,
		}}
		id := ids.At(t).Hex()
		one.order = order{
			ID: id, CustomerID: one.buyer.ID.Hex(), Customer: one.buyer.shown(), Address: one.address.shown(),
			Card: one.card.shown(), Items: items, Shipment: shipment{id, one.buyer.ID.Hex()}, Date: t,
			Total: total(items),
		}
		list = append(list, one)
	}
	return list
}

// recall writes the customers of the past.
func (u *users) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	list := salesBefore(p, r)
	for kind, doc := range map[string]func(sale) any{
		"customers": func(s sale) any { return s.buyer },
		"addresses": func(s sale) any { return s.address },
		"cards":     func(s sale) any { return s.card },
	} {
		var docs []any
		for _, s := range list {
			docs = append(docs, doc(s))
		}
		if err := service.InsertAll(ctx, u.db.Collection(kind), docs); err != nil {
			return err
		}
	}
	return nil
}

// recall writes the orders of the past, and says what was logged of them.
func (o *orders) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	list := salesBefore(p, r)
	if len(list) == 0 {
		return nil
	}
	if n, err := o.c.CountDocuments(ctx, bson.M{"_id": list[0].order.ID}); err != nil || n > 0 {
		return err // Another replica has written them.
	}
	var docs []any
	for _, s := range list {
		docs = append(docs, s.order)
	}
	if err := service.InsertAll(ctx, o.c, docs); err != nil {
		return err
	}
	for _, s := range slices.Backward(list) {
		at := s.order.Date
		line := service.Logged(func(log *slog.Logger) { logOrder(log, at, s.order) })
		if p.Log == nil || !p.Log(at, strings.TrimSpace(line)) {
			break
		}
	}
	return nil
}
