package astronomy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/flagd"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/kafka"
	"github.com/aiopslab/aiopslab/image/otelcollector"
	"github.com/aiopslab/aiopslab/image/postgres"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long the application may take to do something.
const patience = 2 * time.Minute

// front is the application's front door.
type front struct {
	t testing.TB
	d *apptest.Deployment
	c *http.Client
}

func deploy(t testing.TB) *front {
	images := kit.NewRegistry(astronomy.Image(nil), busybox.Image(shell.Tools()), flagd.Image(nil), flagd.UI(nil),
		jaeger.Image(), kafka.Image(nil), otelcollector.Image(nil), postgres.Image(nil), redis.Valkey(nil))
	d := apptest.Deploy(t, astronomy.App(), images)
	f := &front{t, d, d.User().Client()}
	f.eventually("the shop answers", func() error {
		for _, path := range []string{
			"/", "/api/products", "/api/recommendations?productIds=HQTGWGPNH4", "/api/data?contextKeys=travel",
			"/api/cart?sessionId=x", "/api/currency", "/api/shipping?itemList=[]", "/images/products/TheComet.jpg",
			"/api/product-reviews/HQTGWGPNH4",
		} {
			if _, err := f.get(path); err != nil {
				return err
			}
		}
		return nil
	})
	f.eventually("an order can be made", func() error { _, err := f.buy("first", "HQTGWGPNH4", 1, "USD"); return err })
	return f
}

// send sends a request and wants success.
func (f *front) send(method, path, body string, header ...string) (string, error) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, "http://frontend-proxy:8080"+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := f.c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	return string(b), err
}

func (f *front) get(path string) (string, error) { return f.send(http.MethodGet, path, "") }

// eventually asks until it works.
func (f *front) eventually(what string, do func() error) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: %v", what, err)
		}
	}
}

type order struct {
	OrderID            string
	ShippingTrackingID string
	ShippingCost       struct {
		CurrencyCode string
		Units        int64
		Nanos        int32
	}
	Items []struct {
		Item struct {
			ProductID string
			Quantity  int32
		}
	}
}

// buy puts a product into a cart and orders it.
func (f *front) buy(user, id string, pieces int, currency string) (o order, err error) {
	f.t.Helper()
	_, err = f.send(http.MethodPost, "/api/cart", fmt.Sprintf(`{"userId": %q, "item": {"productId": %q, "quantity": %d}}`,
		user, id, pieces))
	if err != nil {
		return o, err
	}
	body, err := f.send(http.MethodPost, "/api/checkout", fmt.Sprintf(`{"userId": %q, "userCurrency": %q,
		"email": "someone@example.com", "address": {"streetAddress": "5 Mill Road"},
		"creditCard": {"creditCardNumber": "4432-8015-6152-0454", "creditCardExpirationYear": 2039}}`, user, currency))
	if err == nil {
		err = json.Unmarshal([]byte(body), &o)
	}
	return o, err
}

func (f *front) sql(query string) string {
	f.t.Helper()
	db := f.d.Pod("postgresql")
	run := db.Machine.Start(db.Program("psql"), "psql", "-U", "root", "-d", "otel", "-tAc", query)
	if code := run.Wait(); code != 0 {
		f.t.Fatalf("%s: exit %d\n%s%s", query, code, run.Stdout, run.Stderr)
	}
	return strings.TrimSpace(run.Stdout.String())
}

func TestFrontDoor(t *testing.T) {
	f := deploy(t)
	if body, err := f.get("/product/HQTGWGPNH4"); err != nil || !strings.Contains(body, "<title>Astronomy Shop</title>") {
		t.Errorf("a page: %v", err)
	}
	o, err := f.buy("somebody", "LS4PSXUNUM", 2, "EUR")
	if err != nil {
		t.Fatal(err)
	}
	// 2 x 8.99 dollars are 15.90 euros.
	if o.ShippingCost.CurrencyCode != "EUR" || o.ShippingCost.Units != 15 || len(o.Items) != 1 || o.Items[0].Item.Quantity != 2 {
		t.Errorf("%+v", o)
	}
	if body, err := f.get("/api/cart?sessionId=somebody"); err != nil || strings.TrimSpace(body) != `{"userId":"somebody","items":[]}` {
		t.Errorf("the cart afterwards: %s, %v", body, err)
	}
	// The order goes through Kafka to who keeps it, and to who looks at it.
	f.d.Pod("fraud-detection").Await(o.OrderID)
	f.d.Pod("accounting").Await(o.OrderID)
	f.d.Pod("email").Await(o.OrderID)
	if n := f.sql(`SELECT quantity FROM accounting.orderitem WHERE order_id = '` + o.OrderID + `'`); n != "2" {
		t.Errorf("the database has %q of the order", n)
	}

	for path, want := range map[string]string{
		"/api/products/nothing": "500 rpc error: code = NotFound",
		"/api/shipping":         "400 itemList and address must be JSON",
		"/nowhere":              "404",
	} {
		if _, err := f.get(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if _, err := f.send(http.MethodPut, "/api/cart", "{}"); err == nil || !strings.Contains(err.Error(), "405") {
		t.Errorf("PUT: %v", err)
	}
	for _, path := range astronomy.App().Heard {
		_, _ = f.get(strings.ReplaceAll(path, "{words}", "read-this"))
		f.d.Pod("frontend").Await("read-this")
		f.d.Pod("product-catalog").Await("read-this")
	}

	// Carts outlive the service, and orders are made without the services that only hear of them.
	if _, err := f.send(http.MethodPost, "/api/cart", `{"userId": "u", "item": {"productId": "HQTGWGPNH4", "quantity": 1}}`); err != nil {
		t.Fatal(err)
	}
	f.d.Restart("cart")
	f.d.Restart("kafka")
	f.eventually("the cart is there", func() error {
		body, err := f.get("/api/cart?sessionId=u")
		if err == nil && !strings.Contains(body, "The Comet Book") {
			t.Fatalf("the cart is lost: %s", body)
		}
		return err
	})
	var later []string
	f.eventually("an order is kept and looked at after Kafka came back", func() error {
		o, err := f.buy("later", "HQTGWGPNH4", 1, "USD")
		if err != nil {
			return err
		}
		later = append(later, o.OrderID)
		for _, pod := range []string{"accounting", "fraud-detection"} {
			log := f.d.Pod(pod).Stdout.String()
			if !slices.ContainsFunc(later, func(id string) bool { return strings.Contains(log, id) }) {
				return fmt.Errorf("%s has none of %v", pod, later)
			}
		}
		return nil
	})
}

// Every service answers its own question, and none that of another. Servers of the same kind are the
// same program; who else is asked listens on the port that the question is for.
func TestQuestions(t *testing.T) {
	f := deploy(t)
	ports := map[string]int{
		"image-provider": 8081, "load-generator": 8089, "flagd": 8013, "kafka": 9092, "postgresql": 5432,
		"product-reviews": 3551, "llm": 8000, "grafana": 3000,
	}
	for _, s := range astronomy.App().Services {
		if ports[s.Name] == 0 && s.Kind == "service" && s.Ask != nil {
			ports[s.Name] = 8080
		}
	}
	f.eventually("the load generator has users", func() error {
		_, err := f.get("/loadgen/stats/requests")
		return err
	})
	f.eventually("there are traces", func() error {
		body, err := f.get("/jaeger/ui/api/services")
		if err == nil && !strings.Contains(body, `"frontend"`) {
			err = fmt.Errorf("%s", body)
		}
		return err
	})
	apptest.Questions(t, f.d, astronomy.App(), ports)
}

// Orders of the past are in the database, once, and carts that were left behind in the store. Meanwhile users buy.
func TestGrown(t *testing.T) {
	f := deploy(t)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	// An order's id tells when it was made.
	made := func(query string) (list []string) {
		for _, line := range strings.Fields(f.sql(query)) {
			id, err := uuid.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			if sec, nsec := id.Time().UnixTime(); time.Unix(sec, nsec).Before(p.Began) {
				list = append(list, line)
			}
		}
		slices.Sort(list)
		return list
	}
	const orders = `SELECT order_id FROM accounting."order"`
	var once []string
	f.eventually("accounting tells of the past", func() error { // It may only just have been started.
		if err := f.d.Pod("accounting").Recall(t.Context(), p); err != nil {
			return err
		}
		if once = made(orders); len(once) == 0 {
			return errors.New("there are no orders of the past")
		}
		return nil
	})
	if err := f.d.Pod("accounting").Recall(t.Context(), p); err != nil { // Another replica does the same.
		t.Fatal(err)
	}
	if again := made(orders); !slices.Equal(again, once) {
		t.Errorf("there are %d orders of the past, and %d when it is told again", len(once), len(again))
	}
	shipped := made(`SELECT o.order_id FROM accounting."order" o JOIN accounting.shipping s ON s.order_id = o.order_id`)
	if !slices.Equal(shipped, once) {
		t.Errorf("%d of %d orders are shipped", len(shipped), len(once))
	}
	if err := f.d.Pod("cart").Recall(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}
