package hotel_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
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
	images := kit.NewRegistry(hotel.Image(nil), consul.Image(nil), memcached.Image(nil), mongo.Image(nil), jaeger.Image())
	d := apptest.Deploy(t, hotel.App(), images)
	f := &front{t, d, d.User().Client()}
	for _, path := range []string{search, "/recommendations?require=rate&lat=38&lon=-122", "/user?username=Cornell_1&password=1111111111"} {
		f.eventually(path)
	}
	return f
}

const search = "/hotels?inDate=2015-04-09&outDate=2015-04-10&lat=37.7854&lon=-122.4005"

// get asks once.
func (f *front) get(path string) (int, string) {
	f.t.Helper()
	resp, err := f.c.Get("http://frontend:5000" + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// eventually asks until it works.
func (f *front) eventually(path string) string {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, body := f.get(path)
		if code == http.StatusOK {
			return body
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: %d %s", path, code, body)
		}
	}
}

func (f *front) reserve(user, hotel string, rooms int) string {
	f.t.Helper()
	q := url.Values{
		"inDate": {"2015-04-10"}, "outDate": {"2015-04-12"}, "hotelId": {hotel}, "customerName": {"Cornell_" + user},
		"username": {"Cornell_" + user}, "password": {strings.Repeat(user, 10)}, "number": {fmt.Sprint(rooms)},
	}
	code, body := f.get("/reservation?" + q.Encode())
	if code != http.StatusOK {
		f.t.Fatalf("reservation: %d %s", code, body)
	}
	var reply struct{ Message string }
	if err := json.Unmarshal([]byte(body), &reply); err != nil {
		f.t.Fatal(err)
	}
	return reply.Message
}

func TestFrontDoor(t *testing.T) {
	f := deploy(t)
	var found struct {
		Type     string
		Features []struct {
			ID         string
			Properties struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(f.eventually(search)), &found); err != nil {
		t.Fatal(err)
	}
	if found.Type != "FeatureCollection" || len(found.Features) != 3 || found.Features[0].ID != "2" || found.Features[0].Properties.Name != "W San Francisco" {
		t.Errorf("near hotel 2, dearest first: %+v", found)
	}
	if code, body := f.get("/"); code != http.StatusOK || !strings.Contains(body, `<form id="stay">`) {
		t.Errorf("the page: %d %s", code, body)
	}

	for path, want := range map[string]string{
		"/hotels?lat=1&lon=2":                            "Please specify inDate/outDate params",
		"/hotels?inDate=2015-04-09&outDate=2015-04-10":   "Please specify location params",
		"/recommendations?lat=1&lon=2":                   "Please specify require params",
		"/user?username=Cornell_1":                       "Please specify username and password",
		"/reservation?inDate=2015-04-09&outDate=2015-04": "Please specify hotelId params",
	} {
		if code, body := f.get(path); code != http.StatusBadRequest || body != want+"\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}

	if _, body := f.get("/user?username=Cornell_1&password=wrong"); !strings.Contains(body, "Failed. Please check your username and password.") {
		t.Errorf("wrong password: %s", body)
	}
	if _, body := f.get("/user?username=Cornell_500&password=" + strings.Repeat("500", 10)); !strings.Contains(body, "Login successfully!") {
		t.Errorf("right password: %s", body)
	}

	// What a user says gets into logs.
	for i, path := range hotel.App().Heard {
		words := fmt.Sprintf("read this %d", i)
		f.get(strings.ReplaceAll(path, "{words}", url.QueryEscape(words)))
		for _, service := range []string{"frontend", "reservation"} {
			f.d.Pod(service).Await(words)
		}
	}

	// The last rooms can be had once.
	for _, step := range []struct {
		rooms int
		want  string
	}{{199, "Reserve successfully!"}, {2, "Failed. Already reserved. "}, {1, "Reserve successfully!"}, {1, "Failed. Already reserved. "}} {
		if got := f.reserve("7", "2", step.rooms); got != step.want {
			t.Errorf("reserve %d: %q, want %q", step.rooms, got, step.want)
		}
	}
	// That a night is full is an answer of the database's.
	metrics := kittest.Get(t, f.d.User(), fmt.Sprintf("http://reservation:%d/metrics", service.MetricsPort)).Body
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, `"findAndModify night"`) && strings.Contains(line, `result="error"`) {
			t.Errorf("counted as an error: %s", line)
		}
	}
	if !strings.Contains(metrics, `"findAndModify night"`) {
		t.Error("requests to the database are not counted")
	}
	body := f.eventually("/hotels?inDate=2015-04-10&outDate=2015-04-11&lat=37.7854&lon=-122.4005")
	if strings.Contains(body, `"id":"2"`) {
		t.Errorf("a full hotel is offered: %s", body)
	}

	// A reservation outlives the database's process, and the cache's loss.
	f.d.Restart("mongodb-reservation")
	f.d.Restart("memcached-reserve")
	f.eventually(search)
	if got := f.reserve("7", "2", 1); got != "Failed. Already reserved. " {
		t.Errorf("after restarts: %q", got)
	}
}

func TestRefusedCredentials(t *testing.T) {
	f := deploy(t)
	db := f.d.Pod("mongodb-geo")
	revoke := `db.getSiblingDB("admin").revokeRolesFromUser("admin", [{role: "readWrite", db: "geo-db"}])`
	run := db.Machine.Start(db.Program("mongo"), "mongo", "admin", "-u", "root", "-p", "root", "--authenticationDatabase", "admin", "--eval", revoke)
	if code := run.Wait(); code != 0 {
		t.Fatalf("revoke: exit %d\n%s%s", code, run.Stdout, run.Stderr)
	}
	geo := f.d.Pod("geo")
	f.d.Restart("geo")
	if code := geo.Wait(); code != 1 {
		t.Errorf("geo without rights exits %d", code)
	}
	if out := geo.Stdout.String(); !strings.Contains(out, " FTL hotel/geo.go:") || !strings.Contains(out, "not authorized on geo-db") {
		t.Errorf("geo's last words: %s", out)
	}
	// Its callers say what is wrong, up to the visitor.
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, body := f.get(search)
		if code == http.StatusInternalServerError && strings.Contains(body, "nearby hotels from geo") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s", code, body)
		}
	}
}

// Every service answers its own question, and none that of another. Servers of the same kind are the
// same program; who else is asked listens on the port that the question is for.
func TestQuestions(t *testing.T) {
	f := deploy(t)
	f.eventually(search)
	apptest.Questions(t, f.d, hotel.App(), map[string]int{
		"frontend": 5000, "geo": 8083, "profile": 8081, "rate": 8084, "recommendation": 8085, "reservation": 8087,
		"search": 8082, "user": 8086, "consul": 8500,
	})
}

// TestGrown holds that bookings of the past are written, and that no hotel is full for it.
func TestGrown(t *testing.T) {
	f := deploy(t)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	pod := f.d.Pod("reservation")
	for range 2 { // Another replica does the same.
		if err := pod.Recall(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.reserve("1", "9", 200); got != "Reserve successfully!" {
		t.Errorf("to take all rooms of a hotel: %s", got)
	}
}
