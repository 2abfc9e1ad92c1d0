package astronomy

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
)

// shopper is a user of the load generator.
type shopper struct {
	g     *loadgen
	id    string
	tasks []task
}

// task is something that users do, how often beside others, and how many requests of each name it makes on average
// while no flag is on.
type task struct {
	name   string
	weight int
	do     func(u *shopper, ctx context.Context) error
	asks   map[string]float64
}

// The names of requests that several tasks make.
const (
	getProduct  = "GET /api/products/{id}"
	getCart     = "GET /api/cart"
	postCart    = "POST /api/cart"
	getPictures = "GET /images/products/"
	askFlags    = "POST /flagservice/"
)

// asksOnce is what a task asks that makes one request.
func asksOnce(name string) map[string]float64 { return map[string]float64{name: 1} }

// apiTasks are what users do who want nothing but data, browserTasks what users do who look at pages.
var (
	apiTasks = []task{
		{"index", 1, (*shopper).index, asksOnce("GET /")},
		{"browse_product", 10, (*shopper).browse, asksOnce(getProduct)},
		{"get_recommendations", 3, (*shopper).recommend, asksOnce("GET /api/recommendations")},
		{"get_product_reviews", 2, (*shopper).readReviews, asksOnce("GET /api/product-reviews/{id}")},
		{
			"ask_product_ai_assistant", 1, (*shopper).askAssistant,
			asksOnce("POST /api/product-ask-ai-assistant/{id}"),
		},
		{"get_ads", 3, (*shopper).advertise, asksOnce("GET /api/data")},
		{"view_cart", 3, (*shopper).viewCart, asksOnce(getCart)},
		{
			"add_to_cart", 2, func(u *shopper, ctx context.Context) error { return u.add(ctx, newUser()) },
			map[string]float64{getProduct: 1, postCart: 1},
		},
		{
			"checkout", 1, func(u *shopper, ctx context.Context) error { return u.checkout(ctx, 1) },
			map[string]float64{getProduct: 1, postCart: 1, "POST /api/checkout": 1},
		},
		{
			"checkout_multi", 1, func(u *shopper, ctx context.Context) error { return u.checkout(ctx, between(2, 4)) },
			map[string]float64{getProduct: 3, postCart: 3, "POST /api/checkout": 1},
		},
		{"flood_home", 5, (*shopper).flood, nil},
	}
	browserTasks = []task{
		{
			"change_currency", 1, (*shopper).changeCurrency,
			map[string]float64{"GET /cart": 1, askFlags: 1, getCart: 1},
		},
		{
			"add_product_to_cart", 1, (*shopper).browseAndAdd,
			map[string]float64{"GET /api/products": 1, "GET /": 1, askFlags: 1, getPictures: 2, postCart: 1},
		},
	}
)

// weights is how often users do any of some tasks, in the unit of each task's weight.
func weights(tasks []task) (sum int) {
	for _, t := range tasks {
		sum += t.weight
	}
	return sum
}

// quantities are how many pieces users buy.
var quantities = []int{1, 2, 3, 4, 5, 10}

// live does one thing after another.
func (u *shopper) live(ctx context.Context) {
	sum := weights(u.tasks)
	for pause(ctx, leastThought+rand.N(mostThought-leastThought)) {
		n := rand.IntN(sum)
		for _, t := range u.tasks {
			if n -= t.weight; n < 0 {
				u.run(ctx, t)
				break
			}
		}
	}
}

func (u *shopper) run(ctx context.Context, t task) {
	ctx, span := u.g.s.Span(ctx, "user_"+t.name)
	err := u.g.s.Env.CPU.Use(ctx, visitCost)
	if err == nil {
		err = t.do(u, ctx)
	}
	if ctx.Err() != nil {
		err = nil // It was told to stop.
	}
	service.EndSpan(span, err)
	if err != nil {
		u.g.s.Log.WarnContext(ctx, "user failed", slog.String("task", t.name), slog.Any("error", err))
	}
}

// newUser is a name that nobody has.
func newUser() string { return orderID(time.Now(), "visitor", uint16(rand.Uint32())).String() }

func anyProduct() product { return products[rand.IntN(len(products))] }

func (u *shopper) index(ctx context.Context) error { return u.g.get(ctx, "/", "/", nil) }

// flood asks for the home page as often as a flag says.
func (u *shopper) flood(ctx context.Context) error {
	for range int(min(u.g.flag(ctx, loadGeneratorFloodHomepage), 10_000)) {
		if err := u.index(ctx); err != nil {
			return err
		}
		if !pause(ctx, floodPause) {
			return nil
		}
	}
	return nil
}

func (u *shopper) browse(ctx context.Context) error {
	return u.g.get(ctx, "/api/products/{id}", "/api/products/"+anyProduct().id, nil)
}

func (u *shopper) recommend(ctx context.Context) error {
	return u.g.get(ctx, "/api/recommendations", "/api/recommendations", url.Values{"productIds": {anyProduct().id}})
}

func (u *shopper) advertise(ctx context.Context) error {
	p := anyProduct()
	category := p.categories[rand.IntN(len(p.categories))]
	return u.g.get(ctx, "/api/data", "/api/data", url.Values{"contextKeys": {category}})
}

func (u *shopper) readReviews(ctx context.Context) error {
	return u.g.get(ctx, "/api/product-reviews/{id}", "/api/product-reviews/"+anyProduct().id, nil)
}

func (u *shopper) askAssistant(ctx context.Context) error {
	_, err := u.g.post(ctx, "/api/product-ask-ai-assistant/{id}", "/api/product-ask-ai-assistant/"+anyProduct().id,
		map[string]string{"question": "What do buyers say?"})
	return err
}

func (u *shopper) viewCart(ctx context.Context) error {
	return u.g.get(ctx, "/api/cart", "/api/cart", url.Values{"sessionId": {u.id}})
}

// add puts something into a cart, after a look at it.
func (u *shopper) add(ctx context.Context, user string) error {
	p := anyProduct()
	if err := u.g.get(ctx, "/api/products/{id}", "/api/products/"+p.id, nil); err != nil {
		return err
	}
	_, err := u.g.post(ctx, "/api/cart", "/api/cart", map[string]any{
		"userId": user, "item": itemJSON{ProductID: p.id, Quantity: int32(quantities[rand.IntN(len(quantities))])},
	})
	return err
}

// checkout buys some products.
func (u *shopper) checkout(ctx context.Context, pieces int) error {
	user := newUser()
	for range pieces {
		if err := u.add(ctx, user); err != nil {
			return err
		}
	}
	_, err := u.g.post(ctx, "/api/checkout", "/api/checkout", people[rand.IntN(len(people))].purchase(user))
	return err
}

// purchase is what somebody sends to buy a cart.
func (p person) purchase(user string) purchaseJSON {
	b := purchaseJSON{
		UserID: user, UserCurrency: p.currency, Email: p.email,
		Address: addressJSON{p.street, p.city, p.state, p.country, p.zip},
	}
	b.CreditCard.Number, b.CreditCard.CVV, b.CreditCard.Year, b.CreditCard.Month = p.card, p.cvv, p.year, p.month
	return b
}

// look opens a page as a browser does: the page, the flags that it asks for, and the pictures of products.
func (u *shopper) look(ctx context.Context, page string, list ...product) error {
	b := &browser{u: u}
	html, err := b.load(ctx, "documentLoad", page, page)
	if err != nil {
		return err
	}
	defer b.tell(ctx, readTelemetry(html))
	var header []string
	if delay := u.slowness(ctx); delay > 0 {
		header = []string{delayHeader, strconv.Itoa(delay)}
	}
	for _, p := range list {
		_, err := b.load(ctx, "resourceFetch", "/images/products/", "/images/products/"+p.picture+".jpg", header...)
		if err != nil {
			return err
		}
	}
	return nil
}

// slowness asks flagd, as the page does, how late pictures are to come, in milliseconds.
func (u *shopper) slowness(ctx context.Context) int {
	data, err := u.g.post(ctx, "/flagservice/", "/flagservice/flagd.evaluation.v1.Service/ResolveFloat",
		map[string]any{"flagKey": imageSlowLoad, "context": map[string]any{}})
	var answer struct{ Value float64 }
	if err != nil || json.Unmarshal(data, &answer) != nil {
		return 0
	}
	return int(answer.Value)
}

func (u *shopper) changeCurrency(ctx context.Context) error {
	if err := u.look(ctx, "/cart"); err != nil {
		return err
	}
	return u.g.get(ctx, "/api/cart", "/api/cart", url.Values{"sessionId": {u.id}, "currencyCode": {"CHF"}})
}

func (u *shopper) browseAndAdd(ctx context.Context) error {
	binoculars := products[2]
	if err := u.g.get(ctx, "/api/products", "/api/products", url.Values{"currencyCode": {dollars}}); err != nil {
		return err
	}
	if err := u.look(ctx, "/", binoculars, anyProduct()); err != nil {
		return err
	}
	_, err := u.g.post(ctx, "/api/cart", "/api/cart", map[string]any{
		"userId": newUser(), "item": itemJSON{ProductID: binoculars.id, Quantity: 1},
	})
	return err
}
