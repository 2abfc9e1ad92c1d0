package astronomy

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// orderRate and cartRate are how many orders users make, and carts they leave behind, in a second, about.
	orderRate = 2.0
	cartRate  = 1.0
	// pastOrders are how many orders one statement writes.
	pastOrders = 20
)

// leftCarts says which of the carts that users left behind are still there: those of an hour, and few of them.
var leftCarts = past.Fading{Dense: time.Minute, Most: 60, Older: 60, Oldest: cartLife}

// datedOrder is an order and its time.
type datedOrder struct {
	at    time.Time
	order *demopb.OrderResult
}

// ordersBefore draws the orders of the past, the first one first.
func ordersBefore(p *past.Past, r *rand.Rand) (list []datedOrder) {
	times := p.Fade(r, p.Began, orderRate, service.Grown)
	slices.Reverse(times)
	random := randomReader{r}
	for _, t := range times {
		who := people[r.IntN(len(people))]
		o := &demopb.OrderResult{
			OrderId: orderID(t, "checkout", uint16(r.Uint32())).String(),
			ShippingAddress: &demopb.Address{
				StreetAddress: who.street, City: who.city, State: who.state, Country: who.country, ZipCode: who.zip,
			},
		}
		o.ShippingTrackingId = uuid.Must(uuid.NewRandomFromReader(random)).String()
		pieces := int64(0)
		for _, i := range r.Perm(len(products))[:1+r.IntN(3)] {
			n := int32(quantities[r.IntN(len(quantities))])
			pieces += int64(n)
			o.Items = append(o.Items, &demopb.OrderItem{
				Item: &demopb.CartItem{ProductId: products[i].id, Quantity: n},
				Cost: exchange(price(products[i].cents), who.currency),
			})
		}
		o.ShippingCost = exchange(price(pieces*perItem), who.currency)
		list = append(list, datedOrder{t, o})
	}
	return list
}

// exchange is an amount in another currency.
func exchange(m *demopb.Money, to string) *demopb.Money {
	n := total(m)
	return money(to, n.Quo(n.Mul(n, big.NewInt(perEuro[to])), big.NewInt(perEuro[m.CurrencyCode])))
}

// randomReader reads bytes from a source of random numbers.
type randomReader struct{ r *rand.Rand }

// Read implements [io.Reader].
func (r randomReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.r.Uint32())
	}
	return len(b), nil
}

// recall writes the orders of the past, and says what was logged of them.
func (a *accounting) recall(ctx context.Context, p *past.Past, random *rand.Rand) error {
	list := ordersBefore(p, random)
	for some := range slices.Chunk(list, pastOrders) {
		err := a.db.patiently(ctx, func(ctx context.Context, c *pgx.Conn) error { return insertOrders(ctx, c, some) })
		if err != nil {
			return err
		}
	}
	for _, o := range slices.Backward(list) {
		if p.Log == nil || !p.Log(o.at, keptLine(o.at, o.order)) {
			break
		}
	}
	return nil
}

// insertOrders writes orders with few statements. Another replica may have written them.
func insertOrders(ctx context.Context, c *pgx.Conn, list []datedOrder) error {
	orders, items, shipping := &rows{}, &rows{}, &rows{}
	for _, d := range list {
		o := d.order
		orders.add(o.OrderId)
		for _, i := range o.Items {
			items.add(i.Cost.CurrencyCode, i.Cost.Units, i.Cost.Nanos, i.Item.ProductId, i.Item.Quantity, o.OrderId)
		}
		to, cost := o.ShippingAddress, o.ShippingCost
		shipping.add(o.ShippingTrackingId, cost.CurrencyCode, cost.Units, cost.Nanos, to.StreetAddress, to.City,
			to.State, to.Country, to.ZipCode, o.OrderId)
	}
	for _, s := range []struct {
		into string
		rows *rows
	}{{insertIntoOrder, orders}, {insertIntoItems, items}, {insertIntoShipping, shipping}} {
		into, _, _ := strings.Cut(s.into, "VALUES")
		_, err := c.Exec(ctx, into+"VALUES "+s.rows.text.String()+" ON CONFLICT DO NOTHING", s.rows.args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// rows are the values of a statement that inserts several.
type rows struct {
	text strings.Builder
	args []any
}

func (r *rows) add(values ...any) {
	if len(r.args) > 0 {
		r.text.WriteString(", ")
	}
	for i, v := range values {
		r.args = append(r.args, v)
		fmt.Fprintf(&r.text, "%c$%d", "(,"[min(i, 1)], len(r.args))
	}
	r.text.WriteByte(')')
}

// recall writes the carts that users have left behind.
func (c *cart) recall(ctx context.Context, p *past.Past, random *rand.Rand) error {
	for _, t := range p.Fade(random, p.Began, cartRate, leftCarts) {
		user := orderID(t, "visitor", uint16(random.Uint32())).String()
		data, err := proto.Marshal(&demopb.Cart{UserId: user, Items: []*demopb.CartItem{{
			ProductId: products[random.IntN(len(products))].id,
			Quantity:  int32(quantities[random.IntN(len(quantities))]),
		}}})
		if err != nil {
			return err
		}
		left := cartLife - time.Since(t)
		if left < time.Second {
			continue
		}
		_, err = c.store.Do(ctx, service.Command{"HSET", user, cartField, data},
			service.Command{"EXPIRE", user, int(left.Seconds())})
		if err != nil {
			return err
		}
	}
	return nil
}

// keptLine is what was logged of an order.
func keptLine(at time.Time, o *demopb.OrderResult) string {
	return service.Logged(func(log *slog.Logger) { logKept(log, at, o) })
}
