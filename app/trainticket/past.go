package trainticket

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// orderRate is how many orders users make in a second, about.
	orderRate = 2
	// travelDays are in how many days they travel, from travelFrom on: those of the mix.
	travelDays = 3650
)

var travelFrom = time.Date(2015, time.April, 1, 0, 0, 0, 0, time.UTC)

// ways are between which stations users travel, with the trips that go there.
var ways = []struct{ from, to, trip string }{
	{"Nan Jing", "Shang Hai", "G1234"},
	{"Nan Jing", "Shang Hai", "G1235"},
	{"Nan Jing", "Shang Hai", "G1236"},
	{"Su Zhou", "Shang Hai", "G1237"},
	{"Shang Hai", "Su Zhou", "D1345"},
}

// ordersBefore draws the orders of the past, the first one first. They were paid from accounts.
func ordersBefore(p *past.Past, r *rand.Rand) (list []order) {
	times := p.Fade(r, p.Began, orderRate, service.Grown)
	slices.Reverse(times)
	who, _ := people()
	for i, t := range times {
		w, one := ways[r.IntN(len(ways))], who[1+r.IntN(passengers)]
		o := order{
			ID: uuidOf(fmt.Sprint("order ", p.Seed, " ", i)), BoughtDate: t.UTC().Truncate(time.Millisecond),
			TravelDate: travelFrom.AddDate(0, 0, r.IntN(travelDays)).Format(time.DateOnly), AccountID: one.ID,
			ContactsName: one.Name, DocumentNumber: one.DocumentNum, TrainNumber: w.trip,
			SeatClass: firstClass + r.IntN(2), From: w.from, To: w.to, Status: paid,
		}
		o.SeatNumber = 1 + r.IntN(confortSeats)
		o.TravelTime, o.Price = o.known()
		list = append(list, o)
	}
	return list
}

// known is when a trip starts and what it costs, by the data that the services begin with.
func (o order) known() (start, price string) {
	for i, t := range trips {
		if t.ID != o.TrainNumber {
			continue
		}
		km, _ := routes[i].distance(stationID(o.From), stationID(o.To))
		rate := prices[i].BasicPriceRate
		if o.SeatClass == firstClass {
			rate = prices[i].FirstClassPriceRate
		}
		return t.StartingTime, money(cents(km, rate))
	}
	return "", ""
}

func stationID(name string) string {
	for _, s := range stations {
		if s.Name == name {
			return s.ID
		}
	}
	return ""
}

// written reports whether another replica has written a document of the past.
func written(ctx context.Context, s *server, collection, id string) (bool, error) {
	n, err := s.db.Collection(collection).CountDocuments(ctx, bson.M{"_id": id})
	return n > 0, err
}

// keepAll writes documents of the past, unless they are there.
func keepAll(ctx context.Context, s *server, collection string, list []order, doc func(order) any) error {
	if len(list) == 0 {
		return nil
	}
	var docs []any
	for _, o := range list {
		docs = append(docs, doc(o))
	}
	return service.InsertAll(ctx, s.db.Collection(collection), docs)
}

// recall writes the orders of the past and the seats that were sold, and says what was logged of them.
func (b *orders) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	list := ordersBefore(p, r)
	if len(list) == 0 {
		return nil
	}
	if done, err := written(ctx, b.s, "orders", list[0].ID); err != nil || done {
		return err
	}
	if err := keepAll(ctx, b.s, "sales", list, func(o order) any { return o.sale() }); err != nil {
		return err
	}
	if err := keepAll(ctx, b.s, "orders", list, func(o order) any { return o }); err != nil {
		return err
	}
	for _, o := range slices.Backward(list) {
		if p.Log == nil || !p.Log(o.BoughtDate, orderLine(o.BoughtDate, o)) {
			break
		}
	}
	return nil
}

// recall takes what the orders of the past cost from the accounts of those who made them, once.
func (a *accounts) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	spent, bought := map[string]int64{}, map[string][]string{}
	for _, o := range ordersBefore(p, r) {
		price, err := readMoney(o.Price)
		if err != nil {
			return fmt.Errorf("the price of order %s: %w", o.ID, err)
		}
		spent[o.AccountID] += price
		bought[o.AccountID] = append(bought[o.AccountID], o.ID)
	}
	var writes []mongo.WriteModel
	for _, id := range slices.Sorted(maps.Keys(spent)) {
		writes = append(writes, mongo.NewUpdateOneModel().
			SetFilter(bson.M{"_id": id, "orders": bson.M{"$ne": bought[id][0]}}).
			SetUpdate(bson.M{
				"$inc": bson.M{"cents": -spent[id]}, "$push": bson.M{"orders": bson.M{"$each": bought[id]}},
			}))
	}
	return service.WriteAll(ctx, a.s.db.Collection("balance"), writes)
}

// recall writes the mails of the past.
func (n *notification) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	return keepAll(ctx, n.s, "mails", ordersBefore(p, r), func(o order) any {
		return mail{
			OrderNumber: o.ID, AccountID: o.AccountID, Username: o.ContactsName, Email: o.ContactsName + "@example.com",
			StartingPlace: o.From, EndPlace: o.To, StartingTime: o.TravelTime, Date: o.TravelDate,
			SeatClass: o.SeatClass, SeatNumber: o.SeatNumber, Price: o.Price,
		}
	})
}
