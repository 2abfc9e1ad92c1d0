package trainticket_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/trainticket"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/rabbitmq"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long the application may take to do something.
const patience = 2 * time.Minute

// front is the application's front door.
type front struct {
	t     *testing.T
	d     *apptest.Deployment
	c     *http.Client
	token string
}

func deploy(t *testing.T) *front {
	images := kit.NewRegistry(trainticket.Image(nil), jaeger.Image(), mongo.Image(nil), rabbitmq.Image(nil))
	d := apptest.Deploy(t, trainticket.App(), images)
	f := &front{t: t, d: d, c: d.User().Client()}
	f.eventually("the site answers", func() error {
		for _, path := range []string{"stationservice/stations", "routeservice/routes", "trainservice/trains", "priceservice/prices"} {
			if _, err := f.send(http.MethodGet, path, ""); err != nil {
				return err
			}
		}
		if err := f.login("fdse_microservice", "111111"); err != nil {
			return err
		}
		_, err := f.book("G1237", "Su Zhou", "Shang Hai", 3)
		return err
	})
	return f
}

const me = "4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f"

// send sends a request and returns the data of the answer.
func (f *front) send(method, path, body string) (json.RawMessage, error) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, "http://ts-gateway-service:18888/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	resp, err := f.c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var r struct {
		Status int
		Msg    string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(b, &r); err != nil || r.Status != 1 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	return r.Data, nil
}

func (f *front) login(name, password string) error {
	data, err := f.send(http.MethodPost, "users/login", fmt.Sprintf(`{"username": %q, "password": %q}`, name, password))
	if err != nil {
		return err
	}
	var s struct{ Token string }
	err = json.Unmarshal(data, &s)
	f.token = s.Token
	return err
}

type order struct {
	ID, Price, TrainNumber, TravelTime string
	Status, SeatNumber                 int
}

func (f *front) book(trip, from, to string, class int) (o order, err error) {
	data, err := f.send(http.MethodPost, "preserveservice/preserve", fmt.Sprintf(
		`{"accountId": %q, "tripId": %q, "seatType": %d, "date": "2016-05-04", "from": %q, "to": %q}`, me, trip, class, from, to))
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	return o, err
}

func (f *front) pay(o order) error {
	_, err := f.send(http.MethodPost, "inside_pay_service/inside_payment", fmt.Sprintf(`{"orderId": %q, "userId": %q}`, o.ID, me))
	return err
}

// mine finds an order among mine.
func (f *front) mine(id string) order {
	f.t.Helper()
	data, err := f.send(http.MethodPost, "orderservice/order/refresh", fmt.Sprintf(`{"loginId": %q}`, me))
	if err != nil {
		f.t.Fatal(err)
	}
	var list []order
	if err := json.Unmarshal(data, &list); err != nil {
		f.t.Fatal(err)
	}
	for _, o := range list {
		if o.ID == id {
			return o
		}
	}
	f.t.Fatalf("order %s is not among mine", id)
	return order{}
}

func (f *front) balance() string {
	f.t.Helper()
	data, err := f.send(http.MethodGet, "inside_pay_service/inside_payment/account/"+me, "")
	if err != nil {
		f.t.Fatal(err)
	}
	var b struct{ Balance string }
	if err := json.Unmarshal(data, &b); err != nil {
		f.t.Fatal(err)
	}
	return b.Balance
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

func (f *front) mail(o order) {
	f.t.Helper()
	f.eventually("a mail comes", func() error {
		_, err := f.send(http.MethodGet, "notifyservice/notification/order/"+o.ID, "")
		return err
	})
}

func TestFrontDoor(t *testing.T) {
	f := deploy(t)
	data, err := f.send(http.MethodPost, "travelservice/trips/left",
		`{"startingPlace": "Su Zhou", "endPlace": "Shang Hai", "departureTime": "2016-05-04"}`)
	if err != nil || !strings.Contains(string(data), `"tripId":"G1237","trainTypeId":"GaoTieTwo","startingStation":"Su Zhou"`) ||
		!strings.Contains(string(data), `"startingTime":"08:00","endTime":"08:15"`) {
		t.Errorf("%s, %v", data, err)
	}
	o, err := f.book("G1236", "Nan Jing", "Shang Hai", 2)
	if err != nil {
		t.Fatal(err)
	}
	if o.Price != "250.00" || o.TravelTime != "14:00" || o.SeatNumber < 1 || o.SeatNumber > 200 || f.mine(o.ID).Status != 0 {
		t.Errorf("%+v", o)
	}
	f.mail(o)
	before := f.balance()
	for range 2 { // Once is enough.
		if err := f.pay(o); err != nil {
			t.Fatal(err)
		}
	}
	if f.mine(o.ID).Status != 1 || before != "500000.00" || f.balance() != "499750.00" {
		t.Errorf("%+v, %s after %s", f.mine(o.ID), f.balance(), before)
	}
	if _, err := f.send(http.MethodGet, "cancelservice/cancel/"+o.ID+"/"+me, ""); err != nil {
		t.Fatal(err)
	}
	if f.mine(o.ID).Status != 4 || f.balance() != "499950.00" {
		t.Errorf("%+v, %s", f.mine(o.ID), f.balance())
	}
	if err := f.pay(o); err == nil || !strings.Contains(err.Error(), "cannot be paid") {
		t.Errorf("to pay for what was canceled: %v", err)
	}
	for want, do := range map[string]func() error{
		"401": func() error { return f.login("fdse_microservice", "wrong") },
		"404": func() error { _, err := f.send(http.MethodGet, "stationservice/stations/id/Nowhere", ""); return err },
		"there is no station Atlantis": func() error {
			_, err := f.book("G1236", "Atlantis", "Shang Hai", 2)
			return err
		},
		"does not go from Shang Hai to Nan Jing": func() error { _, err := f.book("G1236", "Shang Hai", "Nan Jing", 2); return err },
		"seatType":                               func() error { _, err := f.book("G1236", "Nan Jing", "Shang Hai", 1); return err },
		"403": func() error {
			_, err := f.send(http.MethodPost, "orderservice/order/refresh", `{"loginId": "somebody"}`)
			return err
		},
		"400": func() error { _, err := f.send(http.MethodPost, "travelservice/trips/left", "{"); return err },
	} {
		token := f.token
		if err := do(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		f.token = token
	}
	for _, path := range trainticket.App().Heard {
		_, _ = f.send(http.MethodGet, strings.TrimPrefix(strings.ReplaceAll(path, "{words}", "read-this"), "/api/v1/"), "")
		f.d.Pod("ts-station-service").Await("read-this")
	}

	// Mails wait for a broker that is away, and those in the queue for who sends them.
	f.d.Restart("rabbitmq")
	f.d.Restart("ts-notification-service")
	f.eventually("it can be booked", func() error {
		o, err = f.book("D1345", "Shang Hai", "Su Zhou", 3)
		return err
	})
	f.mail(o)
	// Orders outlive the services.
	f.d.Restart("ts-order-service")
	f.d.Restart("ts-order-mongo")
	f.eventually("orders are there", func() error {
		_, err := f.send(http.MethodPost, "orderservice/order/refresh", fmt.Sprintf(`{"loginId": %q}`, me))
		return err
	})
	if got := f.mine(o.ID); got.Price != "22.50" {
		t.Errorf("%+v", got)
	}
}

// Every service answers its own question, and none that of another.
func TestQuestions(t *testing.T) {
	f := deploy(t)
	f.eventually("there are traces", func() error {
		resp, err := f.c.Get("http://jaeger:16686/api/services")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(b), "ts-gateway-service") {
			err = fmt.Errorf("%s", b)
		}
		return err
	})
	apptest.Questions(t, f.d, trainticket.App(), trainticket.Ports)
}

// What was booked, paid and mailed in the past is in the stores, once.
func TestGrown(t *testing.T) {
	f := deploy(t)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	ask := func(service, db, collection, what string) string {
		pod := f.d.Pod("ts-" + service + "-mongo")
		uri := "mongodb://127.0.0.1:27017/" + db
		if service == "order" || service == "inside-payment" {
			uri = "mongodb://admin:admin@127.0.0.1:27017/" + db + "?authSource=admin"
		}
		run := pod.Machine.Start(pod.Program("mongosh"), "mongosh", uri, "--quiet", "--eval", "db."+collection+"."+what)
		if code := run.Wait(); code != 0 {
			t.Fatalf("exit %d\n%s%s", code, run.Stdout, run.Stderr)
		}
		return strings.TrimSpace(run.Stdout.String())
	}
	count := func(service, db, collection string) string { return ask(service, db, collection, "countDocuments()") }
	for range 2 { // Another replica does the same.
		for _, name := range []string{"order", "inside-payment", "notification"} {
			if err := f.d.Pod("ts-"+name+"-service").Recall(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	sum := func(what string) string {
		return "aggregate([{$group: {_id: null, n: {$sum: " + what + "}}}]).toArray()[0].n"
	}
	paid := ask("inside-payment", "ts", "balance", sum(`{$size: {$ifNull: ["$orders", []]}}`))
	if len(paid) < 3 {
		t.Errorf("%s orders are paid", paid)
	}
	// What is missing on the accounts is what the orders cost: from 5.00 to 1000.00 each.
	spent := ask("inside-payment", "ts", "balance", sum("{$subtract: [50000000, '$cents']}"))
	left, err := strconv.ParseFloat(strings.Trim(spent, `Long(")`), 64)
	if n, bad := strconv.ParseFloat(paid, 64); err != nil || bad != nil || left < n*5_00 || left > n*1000_00 {
		t.Errorf("%s orders cost %v cents, %v", paid, left, err)
	}
	f.eventually("mails are there", func() error {
		if n := count("notification", "ts", "mails"); len(n) != len(paid) {
			return fmt.Errorf("%s mails of %s paid orders", n, paid)
		}
		return nil
	})
	if n := count("order", "ts-order-mongo", "orders"); len(n) != len(paid) {
		t.Errorf("%s orders, %s of them paid", n, paid)
	}
}
