package apps

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const search = "/hotels?inDate=2015-04-09&outDate=2015-04-10&lat=37.7854&lon=-122.4005"

// reserve asks for rooms of a hotel and returns the answer.
func (x *application) reserve(t *testing.T, hotel string, rooms int) string {
	t.Helper()
	q := url.Values{
		"inDate": {"2015-04-10"}, "outDate": {"2015-04-12"}, "hotelId": {hotel}, "customerName": {"Cornell_7"},
		"username": {"Cornell_7"}, "password": {strings.Repeat("7", 10)}, "number": {fmt.Sprint(rooms)},
	}
	var reply struct{ Message string }
	body, err := x.get("/reservation?" + q.Encode())
	if err == nil {
		err = json.Unmarshal([]byte(body), &reply)
	}
	if err != nil {
		t.Fatal(err)
	}
	return reply.Message
}

func TestHotelReservation(t *testing.T) {
	t.Parallel()
	x := deploy(t, hotel.App(), search)
	for _, page := range []string{"/recommendations?require=rate&lat=38&lon=-122", "/user?username=Cornell_7&password=7777777777"} {
		labtest.Await(t, func() (string, error) { return x.get(page) })
	}
	x.countsMatch(t)

	const taken, refused = "Reserve successfully!", "Failed. Already reserved. "
	for _, step := range []struct {
		rooms int
		want  string
	}{{199, taken}, {2, refused}, {1, taken}, {1, refused}} {
		if got := x.reserve(t, "2", step.rooms); got != step.want {
			t.Errorf("reserve %d: %q, want %q", step.rooms, got, step.want)
		}
	}
	x.tracesConnect(t)

	l := x.load(t, 20)
	l.survive(t, "four releases", func() { x.releases(t) })
	l.survive(t, "a release, and services that are scaled", func() { x.live(t, "recommendation") })
	l.survive(t, "the database of reservations and its cache are killed", func() {
		x.kill(t, "mongodb-reservation")
		x.kill(t, "memcached-reserve")
	})
	if got := x.reserve(t, "2", 1); got != refused {
		t.Errorf("a full hotel has room after its database came back: %q", got)
	}
	l.survive(t, "search is killed", func() { x.kill(t, "search") })
	l.survive(t, "every deployment is restarted", func() { x.restart(t) })
	if got := x.reserve(t, "2", 1); got != refused {
		t.Errorf("a full hotel has room after a restart of everything: %q", got)
	}

	l.survive(t, "the database of users is scaled to 0 and back", func() {
		x.scale(t, "mongodb-user", 0)
		x.alertFires(t, "ServiceEndpointDown", map[string]string{"service": "mongodb-user"})
		if body, err := x.get("/user?username=Cornell_7&password=7777777777"); err == nil {
			t.Errorf("a login without a database: %s", body)
		}
		x.scale(t, "mongodb-user", 1)
		x.waitReady(t)
	})
	x.alertEnds(t, "ServiceEndpointDown")
	x.logsAnswer(t, "user", "error", "mongodb-user:27017")
	l.end()
	x.exports(t)
}
