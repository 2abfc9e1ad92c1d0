package sockshop_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/rabbitmq"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/image/tidb/mysql"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long the application may take to do something.
const patience = 2 * time.Minute

// front is somebody with a browser.
type front struct {
	t *testing.T
	d *apptest.Deployment
	c *http.Client
}

func deploy(t *testing.T) *front {
	images := append(sockshop.Images(nil, mongo.Image(nil), mysql.Image(nil)), jaeger.Image(), mongo.Image(nil), redis.Image(nil))
	d := apptest.Deploy(t, sockshop.App(), kit.NewRegistry(append(images, rabbitmq.Images(nil)...)...))
	f := &front{t: t, d: d, c: d.User().Client()}
	f.forget()
	f.eventually("the shop answers", func() error {
		if _, err := f.get("/catalogue", http.StatusOK, `"Holy"`); err != nil {
			return err
		}
		_, err := f.buy(fmt.Sprint("first ", time.Now().UnixNano()), "808a2de1-1aaa-4c25-a9b9-6612e8f29a38")
		return err
	})
	f.forget()
	return f
}

// forget is another visitor.
func (f *front) forget() { f.c.Jar, _ = cookiejar.New(nil) }

// send sends a request, and wants a status and a text in the answer.
func (f *front) send(method, path, body string, status int, text string, header ...string) (string, error) {
	f.t.Helper()
	url := path
	if strings.HasPrefix(path, "/") {
		url = "http://front-end:8079" + path
	}
	req, err := http.NewRequestWithContext(f.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := f.c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != status || !strings.Contains(string(b), text)) {
		err = fmt.Errorf("%s %s: %d %s, want %d with %s", method, path, resp.StatusCode, b, status, text)
	}
	return string(b), err
}

func (f *front) get(path string, status int, text string) (string, error) {
	return f.send(http.MethodGet, path, "", status, text)
}

// must ends the test if a step fails.
func (f *front) must(_ string, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// buy registers a visitor who orders a sock, and returns the order.
func (f *front) buy(name, sock string) (string, error) {
	for _, step := range []struct {
		path, body string
		status     int
	}{
		{"/register", fmt.Sprintf(`{"username": %q, "password": "x"}`, name), 200},
		{"/addresses", `{"street": "Sock Lane", "number": "7"}`, 200},
		{"/cards", `{"longNum": "1234567812345678", "expires": "08/29"}`, 200},
		{"/cart", fmt.Sprintf(`{"id": %q}`, sock), 201},
	} {
		if _, err := f.send(http.MethodPost, step.path, step.body, step.status, ""); err != nil {
			return "", err
		}
	}
	b, err := f.send(http.MethodPost, "/orders", "{}", http.StatusCreated, `"shipment":{"id":`)
	if err != nil {
		return b, err
	}
	var o struct{ ID string }
	return o.ID, json.Unmarshal([]byte(b), &o)
}

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

func TestFrontDoor(t *testing.T) {
	f := deploy(t)
	f.must(f.get("/catalogue?tags=magic,geek", 200, `"YouTube.sock"`))
	f.must(f.get("/catalogue?size=0", 200, "[]"))
	f.must(f.get("/catalogue?size=2&page=2", 200, "SuperSport XL"))
	f.must(f.get("/catalogue/images/holy_1.jpeg", 200, "\xff\xd8"))
	f.must(f.get("/tags", 200, `"tags":["brown","geek"`))
	// What the catalogue refuses is a success, as in the original.
	f.must(f.get("/catalogue/none", 200, `"status_code":404`))
	f.must(f.get("http://catalogue/catalogue/none", 404, "not found"))
	f.must(f.get("/customer-orders.html", 200, "<title>Sock Shop: your orders</title>"))
	for _, path := range sockshop.App().Heard {
		f.must(f.get(strings.ReplaceAll(path, "{words}", "read-this"), 200, ""))
		f.eventually("it is in the log", func() error {
			if log := f.d.Pod("catalogue").Stderr.String(); !strings.Contains(log, "id=read-this") {
				return fmt.Errorf("%s", log)
			}
			return nil
		})
	}

	// What a visitor has chosen is in his cart when he has logged in.
	const cat = "837ab141-399e-4c1f-9abc-bace40296bac"
	f.must(f.get("/cart", 200, "[]"))
	f.must(f.send("POST", "/cart", `{"id": "`+cat+`"}`, 201, ""))
	f.must(f.send("POST", "/cart", `{"id": "`+cat+`"}`, 201, ""))
	f.must(f.send("POST", "/cart/update", `{"id": "`+cat+`", "quantity": 3}`, 202, ""))
	f.must(f.send("POST", "/cart", `{"id": "none"}`, 404, ""))
	f.must(f.send("POST", "/cart", `{`, 400, ""))
	f.must(f.get("/orders", 401, "User not logged in."))
	f.must(f.send("GET", "/login", "", 401, "Unauthorized", "Authorization: Basic dXNlcjp3cm9uZw=="))
	f.must(f.send("GET", "/login", "", 200, "Cookie is set", "Authorization: Basic dXNlcjpwYXNzd29yZA=="))
	f.must(f.get("/cart", 200, `"itemId":"`+cat+`","quantity":3,"unitPrice":15`))
	f.must(f.get("/card", 200, `"longNum":"************5918"`))
	b, err := f.send("POST", "/orders", "{}", 201, `"total":49.99`)
	f.must(b, err)
	f.must(f.get("/orders", 201, `"street":"Whitelees Road"`))
	f.must(f.send("DELETE", "/cart/"+cat, "", 202, ""))
	f.must(f.send("POST", "/orders", "{}", 406, "nothing in the cart"))
	f.must(f.send("POST", "/cart", `{"id": "03fef6ac-1896-4ce8-bd69-b798f85c6e0b"}`, 201, ""))
	f.must(f.send("POST", "/orders", "{}", 406, "Payment declined: amount exceeds 100.00"))
	f.must(f.send("DELETE", "/cart", "", 202, ""))
	f.must(f.get("/cart", 200, "[]"))

	f.forget()
	f.must(f.send("POST", "/register", `{"username": "user", "password": "x"}`, 500, "is taken"))
	id, err := f.buy("somebody", "808a2de1-1aaa-4c25-a9b9-6612e8f29a38")
	f.must(id, err)
	f.must(f.get("/orders/"+id, 200, `"total":22.31`))
	// The same request twice makes one order, and puts one thing into a cart.
	for range 2 {
		f.must(f.send("POST", "http://carts/carts/me/items", `{"itemId": "x", "unitPrice": 1}`, 201, "", "X-Request-Id: one"))
	}
	f.must(f.get("http://carts/carts/me", 200, `"itemId":"x","quantity":1`))
	f.eventually("the shipment has arrived", func() error {
		if log := f.d.Pod("queue-master").Stdout.String(); !strings.Contains(log, "id="+id) {
			return fmt.Errorf("%s", log)
		}
		return nil
	})
}

// A store that is lost is told of, and comes back; a broker that is lost is not felt by who orders.
func TestLostStores(t *testing.T) {
	f := deploy(t)
	f.must(f.get("http://orders/health", 200, `"service":"orders-db","status":"OK"`))
	f.d.Restart("rabbitmq")
	if _, err := f.buy("ships later", "808a2de1-1aaa-4c25-a9b9-6612e8f29a38"); err != nil {
		t.Fatal(err)
	}
	f.d.Restart("session-db")
	f.forget()
	f.eventually("sessions are kept again", func() error { _, err := f.get("/cart", 200, "[]"); return err })
	f.eventually("shipments are taken again", func() error {
		_, err := f.get("http://queue-master/health", 200, `"service":"queue-master-rabbitmq","status":"OK"`)
		return err
	})
}

// Metrics have the original's names; only the first version of catalogue has its labels wrong.
func TestMetrics(t *testing.T) {
	f := deploy(t)
	f.must(f.get("http://catalogue/metrics", 200, `request_duration_seconds_count{isWS="false",method="GET",route="catalogue",status_code="200"}`))
	f.must(f.get("/metrics", 200, `request_duration_seconds_count{method="get",route="/catalogue",service="front-end",status_code="200"}`))
	f.must(f.get("http://carts/metrics", 200, `request_duration_seconds_count{method="POST",route="/carts/{cust}/items",service="carts",status_code="201"}`))
	f.must(f.get("http://user/metrics", 200, `microservices_demo_user_request_count{method="register"}`))
	f.must(f.get("http://queue-master/prometheus", 200, "process_start_time_seconds"))
	f.d.Switch("catalogue", "weaveworksdemos/catalogue:0.3.4")
	f.eventually("the other version serves", func() error { _, err := f.get("/catalogue", 200, "Holy"); return err })
	f.must(f.get("http://catalogue/metrics", 200, `request_duration_seconds_count{method="catalogue",route="200",service="GET",status_code="false"}`))
	// Paths that users make up do not make the metrics longer without end.
	for i := range 300 {
		f.must(f.get(fmt.Sprintf("/catalogue/images/%d.jpg", i), 200, ""))
	}
	b, err := f.get("/metrics", 200, `route="other"`)
	f.must(b, err)
	if n := strings.Count(b, "request_duration_seconds_count{method=\"get\""); n > 250 {
		t.Errorf("%d paths", n)
	}
}

// Every service answers its own question, and none that of another.
func TestQuestions(t *testing.T) {
	f := deploy(t)
	f.eventually("there are traces", func() error { _, err := f.get("http://jaeger:16686/api/services", 200, "front-end"); return err })
	apptest.Questions(t, f.d, sockshop.App(), sockshop.Ports())
}

// Who bought socks in the past is in the stores with the order, once.
func TestGrown(t *testing.T) {
	f := deploy(t)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	for range 2 { // Another replica does the same.
		for _, name := range []string{"user", "orders", "carts", "front-end"} {
			if err := f.d.Pod(name).Recall(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func(store, db, collection string) string {
		pod := f.d.Pod(store)
		run := pod.Machine.Start(pod.Program("mongosh"), "mongosh", "mongodb://127.0.0.1:27017/"+db, "--quiet", "--eval", "db."+collection+".countDocuments()")
		if code := run.Wait(); code != 0 {
			t.Fatalf("exit %d\n%s%s", code, run.Stdout, run.Stderr)
		}
		return strings.TrimSpace(run.Stdout.String())
	}
	cards, orders := count("user-db", "users", "cards"), count("orders-db", "data", "customerOrder")
	if len(orders) < 3 || len(cards) != len(orders) {
		t.Errorf("%s orders, %s cards", orders, cards)
	}
	items, carts := count("carts-db", "data", "item"), count("carts-db", "data", "cart")
	if n, err := strconv.Atoi(items); err != nil || n < 60 || n > 400 || carts != items {
		t.Errorf("%s carts were left with %s items", carts, items)
	}
	pod := f.d.Pod("session-db")
	run := pod.Machine.Start(pod.Program("redis-cli"), "redis-cli", "dbsize")
	code := run.Wait()
	if n, err := strconv.Atoi(strings.TrimSpace(run.Stdout.String())); err != nil || n < 60 || n > 600 {
		t.Errorf("there are %q sessions, exit %d", run.Stdout, code)
	}
}
