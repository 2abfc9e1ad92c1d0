package flightticket

import (
	"fmt"
	"strconv"
)

// The data set is made up. There are airports, routes over three of them, types of aircraft, and trips, each of which
// is a route that is flown with a type of aircraft every day. Everything follows from numbers, so that users can tell
// whether an answer is right.
const (
	stations = 50
	routes   = 30
	types    = 4
	trips    = 60
	stops    = 3 // of a route
)

// stationName is what an airport is called: AP07.
func stationName(id int) string { return fmt.Sprintf("AP%02d", id) }

// route is where a plane flies.
type route struct {
	ID        int   `json:"id"`
	Stations  []int `json:"stations"`
	Distances []int `json:"distances"` // from the first one, in miles
}

func routeOf(id int) route {
	r := route{ID: id, Distances: []int{0, 200 + id*37%900}}
	r.Distances = append(r.Distances, r.Distances[1]+150+id*53%700)
	for i := range stops {
		r.Stations = append(r.Stations, id+10*i)
	}
	return r
}

// aircraft is a type of aircraft. It is called a train type, as in the benchmark that this one was made after.
type aircraft struct {
	ID           int `json:"id"`
	EconomyClass int `json:"economyClass"` // seats, as ComfortClass
	ComfortClass int `json:"comfortClass"`
	AverageSpeed int `json:"averageSpeed"`
}

func aircraftOf(id int) aircraft {
	return aircraft{ID: id, EconomyClass: 120 + 20*id, ComfortClass: 20 + 4*id, AverageSpeed: 400 + 30*id}
}

// trip is a flight that there is every day.
type trip struct {
	ID    int `json:"id"`
	Route int `json:"rId"`
	Type  int `json:"trainTypeId"`
}

func tripOf(id int) trip { return trip{ID: id, Route: id*17%routes + 1, Type: id%types + 1} }

// price is what a mile costs, in cents.
type price struct {
	Basic int `json:"basic_rate"`
	First int `json:"first_class_rate"`
}

func priceOf(route, kind int) price {
	basic := 8 + 2*kind + route%3
	return price{Basic: basic, First: 3 * basic}
}

// settings are what the shop can be told.
var settings = map[string]string{"DirectTicketAllocationProportion": "0.5"}

// Where the data set and what users make of it is in the store.
const (
	stationsKey = "stations" // ids by name
	routesKey   = "routes"   // records by id, as the next three
	typesKey    = "types"
	tripsKey    = "trips"
	pricesKey   = "prices" // by route and type: "3:1"
	configKey   = "config"
	moneyKey    = "money"  // cents by account
	ordersKey   = "orders" // records by id
	filledKey   = "filled" // that the data set is there
)

// ticketsKey is where the seats of a flight are, by number, with the order that has one.
func ticketsKey(trip int, date string) string { return "tickets:" + strconv.Itoa(trip) + ":" + date }

// leftKey is where the seats of a flight are that were given back, and nextKey the last one that was sold otherwise.
func leftKey(trip int, date string, class string) string {
	return "left:" + strconv.Itoa(trip) + ":" + date + ":" + class
}

func nextKey(trip int, date string, class string) string {
	return "next:" + strconv.Itoa(trip) + ":" + date + ":" + class
}
