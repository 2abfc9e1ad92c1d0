package sockshop

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

// leaveRate is how many visitors leave a cart behind in a second, about.
const leaveRate = 0.3

// leftCarts says which of the carts that visitors left behind are still there. Nobody takes them away.
var leftCarts = past.Fading{Dense: time.Minute, Most: 60, Older: 150, Oldest: service.Grown.Oldest}

// left is a visitor of the past who has put something into a cart, and gone.
type left struct {
	at      time.Time
	session string
	item    item
}

// leftBefore draws those who have left a cart behind, the last one first.
func leftBefore(p *past.Past) (list []left) {
	r := rand.New(rand.NewPCG(p.Seed, 0xca27))
	for _, t := range p.Fade(r, p.Began, leaveRate, leftCarts) {
		one, id := socks[r.IntN(len(socks))], sessionID(r)
		list = append(list, left{t, id, item{
			ID: hash(id + "/" + one.ID), Customer: id, ItemID: one.ID, Quantity: 1 + r.IntN(2), UnitPrice: one.Price,
		}})
	}
	return list
}

// sessionID draws an ID like those of rand.Text.
func sessionID(r *rand.Rand) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	id := make([]byte, 26)
	for i := range id {
		id[i] = digits[r.IntN(len(digits))]
	}
	return string(id)
}

// recall writes the carts that visitors of the past have left behind.
func (c *carts) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	ids := service.NewIDs(r)
	var items, carts []any
	for _, l := range slices.Backward(leftBefore(p)) {
		items = append(items, bson.M{
			"_id": l.item.ID, "customerId": l.session, "itemId": l.item.ItemID, "quantity": l.item.Quantity,
			"unitPrice": l.item.UnitPrice, "last": ids.At(l.at).Hex(),
		})
		carts = append(carts, bson.M{"_id": hash(l.session), "customerId": l.session})
	}
	if err := service.InsertAll(ctx, c.items, items); err != nil {
		return err
	}
	return service.InsertAll(ctx, c.carts, carts)
}

// recall writes the sessions of an hour: of visitors who have left a cart behind, and of customers who have bought
// something.
func (k sessions) recall(ctx context.Context, p *past.Past, r *rand.Rand) error {
	var commands []service.Command
	keep := func(at time.Time, one session) error {
		data, err := json.Marshal(one)
		if rest := sessionTime - time.Since(at); err == nil && rest >= time.Second {
			commands = append(commands, service.Command{"SET", "sess:" + one.ID, data, "EX", int(rest.Seconds())})
		}
		return err
	}
	for _, l := range leftBefore(p) {
		if err := keep(l.at, session{ID: l.session}); err != nil {
			return err
		}
	}
	sales := salesBefore(p, r)
	own := rand.New(rand.NewPCG(p.Seed, 0x5e55))
	for _, s := range sales {
		if err := keep(s.buyer.ID.Timestamp(), session{sessionID(own), s.buyer.ID.Hex()}); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(commands, sessionsAtOnce) {
		if _, err := k.redis.Do(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// sessionsAtOnce is how many sessions are sent to the store in one go.
const sessionsAtOnce = 50
