package hotel

import (
	"math"
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		lat1, lon1, lat2, lon2 float64
		km                     float64
	}{
		{"same place", 37.7867, -122.4112, 37.7867, -122.4112, 0},
		{"a degree of latitude", 0, 0, 1, 0, 111.19},
		{"half around the equator", 0, 0, 0, 180, 20015.09},
		{"San Francisco to Los Angeles", 37.7749, -122.4194, 34.0522, -118.2437, 559.12},
	} {
		if got := distance(tt.lat1, tt.lon1, tt.lat2, tt.lon2); math.Abs(got-tt.km) > 0.01*max(1, tt.km/100) {
			t.Errorf("%s: %.2f km, want %.2f", tt.name, got, tt.km)
		}
	}
}

func TestNearby(t *testing.T) {
	g := &geo{hotels: points()}
	res, err := g.Nearby(t.Context(), &hotelpb.NearbyRequest{Lat: 37.7867, Lon: -122.4112})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.HotelIds) != nearResults || res.HotelIds[0] != "1" {
		t.Errorf("near hotel 1: %v", res.HotelIds)
	}
	if res, _ := g.Nearby(t.Context(), &hotelpb.NearbyRequest{Lat: 0, Lon: 0}); len(res.HotelIds) != 0 {
		t.Errorf("in the Atlantic: %v", res.HotelIds)
	}
}

func TestRecommendations(t *testing.T) {
	r := &recommendation{hotels: []recommendable{{"1", 37, -122, 100, 50}, {"2", 38, -122, 120, 40}, {"3", 39, -122, 120, 40}}}
	for require, want := range map[string][]string{"dis": {"1"}, "rate": {"2", "3"}, "price": {"2", "3"}} {
		res, err := r.GetRecommendations(t.Context(), &hotelpb.RecommendationsRequest{Require: require, Lat: 37.1, Lon: -122})
		if err != nil || !slices.Equal(res.HotelIds, want) {
			t.Errorf("%s: %v, %v; want %v", require, res.GetHotelIds(), err, want)
		}
	}
	if _, err := r.GetRecommendations(t.Context(), &hotelpb.RecommendationsRequest{Require: "luck"}); err == nil {
		t.Error("no error for an unknown requirement")
	}
}

func TestStay(t *testing.T) {
	for _, tt := range []struct {
		in, out string
		rooms   int32
		want    []string // nil is an error
	}{
		{"2015-04-09", "2015-04-10", 1, []string{"2015-04-09"}},
		{"2015-04-30", "2015-05-02", 2, []string{"2015-04-30", "2015-05-01"}},
		{"2015-04-10", "2015-04-10", 1, nil},
		{"2015-04-11", "2015-04-10", 1, nil},
		{"2015-04-09", "2016-04-10", 1, nil},
		{"2015-04-09", "2015-04-10", 0, nil},
		{"tomorrow", "2015-04-10", 1, nil},
	} {
		got, err := stay(&hotelpb.ReservationRequest{InDate: tt.in, OutDate: tt.out, RoomNumber: tt.rooms})
		if (err != nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
			t.Errorf("%s to %s: %v, %v", tt.in, tt.out, got, err)
		}
	}
}

func TestData(t *testing.T) {
	if n := len(points()); n != 80 {
		t.Errorf("%d hotels", n)
	}
	if u := users(); len(u) != 501 || u[7].Username != "Cornell_7" || u[7].Password != passwordSum("7777777777") {
		t.Errorf("%d users, %+v", len(u), u[7])
	}
	if c := capacities(); c[0].Number != 200 || c[6].Number != 300 || c[7].Number != 250 || c[8].Number != 200 {
		t.Errorf("capacities %v", c[:9])
	}
	for _, p := range ratePlans() {
		if p.Room.TotalRateInclusive <= p.Room.TotalRate {
			t.Errorf("hotel %s costs less with taxes: %+v", p.HotelID, p.Room)
		}
	}
}
