package hotel

import (
	"fmt"
	"strings"
)

// The data an application starts with: 80 hotels around San Francisco and 501 users.
const (
	hotelCount = 80
	userCount  = 501
)

type point struct {
	HotelID string  `bson:"hotelId"`
	Lat     float64 `bson:"lat"`
	Lon     float64 `bson:"lon"`
}

type ratePlan struct {
	HotelID string   `bson:"hotelId"`
	Code    string   `bson:"code"`
	InDate  string   `bson:"inDate"`
	OutDate string   `bson:"outDate"`
	Room    roomType `bson:"roomType"`
}

type roomType struct {
	BookableRate       float64 `bson:"bookableRate"`
	Code               string  `bson:"code"`
	Description        string  `bson:"roomDescription"`
	TotalRate          float64 `bson:"totalRate"`
	TotalRateInclusive float64 `bson:"totalRateInclusive"`
}

type hotelProfile struct {
	ID          string       `bson:"id"`
	Name        string       `bson:"name"`
	PhoneNumber string       `bson:"phoneNumber"`
	Description string       `bson:"description"`
	Address     hotelAddress `bson:"address"`
}

type hotelAddress struct {
	StreetNumber string  `bson:"streetNumber"`
	StreetName   string  `bson:"streetName"`
	City         string  `bson:"city"`
	State        string  `bson:"state"`
	Country      string  `bson:"country"`
	PostalCode   string  `bson:"postalCode"`
	Lat          float64 `bson:"lat"`
	Lon          float64 `bson:"lon"`
}

type recommendable struct {
	HotelID string  `bson:"hotelId"`
	Lat     float64 `bson:"lat"`
	Lon     float64 `bson:"lon"`
	Rate    float64 `bson:"rate"`
	Price   float64 `bson:"price"`
}

type account struct {
	Username string `bson:"username"`
	Password string `bson:"password"` // its SHA-256 sum, in hexadecimal
}

type capacity struct {
	HotelID string `bson:"hotelId"`
	Number  int    `bson:"numberOfRoom"`
}

type booking struct {
	HotelID      string `bson:"hotelId"`
	CustomerName string `bson:"customerName"`
	InDate       string `bson:"inDate"`
	OutDate      string `bson:"outDate"`
	Number       int    `bson:"number"`
}

type night struct {
	ID      string `bson:"_id"`
	HotelID string `bson:"hotelId"`
	Date    string `bson:"date"`
	Taken   int    `bson:"taken"`
}

// known are the hotels that have names; the others are placed on a line to the north-east.
var known = []struct {
	name, phone, number, street, postal string
	lat, lon                            float64
	rate, price                         float64
}{
	{"Clift Hotel", "(415) 775-4700", "495", "Geary St", "94102", 37.7867, -122.4112, 109, 150},
	{"W San Francisco", "(415) 777-5300", "181", "3rd St", "94103", 37.7854, -122.4005, 139, 120},
	{"Hotel Zetta", "(415) 543-8555", "55", "5th St", "94103", 37.7834, -122.4071, 109, 190},
	{"Hotel Vitale", "(415) 278-3700", "8", "Mission St", "94105", 37.7936, -122.3930, 129, 160},
	{"Phoenix Hotel", "(415) 776-1380", "601", "Eddy St", "94109", 37.7831, -122.4181, 119, 140},
	{"St. Regis San Francisco", "(415) 284-4000", "125", "3rd St", "94109", 37.7863, -122.4015, 149, 200},
}

// place is where hotel i, counted from 1, is.
func place(i int) (lat, lon float64) {
	if i <= len(known) {
		return known[i-1].lat, known[i-1].lon
	}
	return 37.7835 + float64(i)/500*3, -122.41 + float64(i)/500*4
}

// prices of hotels by i modulo 5: the room alone, and with taxes.
var prices = [5][2]float64{{109, 123.17}, {120, 140}, {124, 144}, {132, 158}, {232, 258}}

func points() []point {
	docs := make([]point, hotelCount)
	for i := range docs {
		lat, lon := place(i + 1)
		docs[i] = point{fmt.Sprint(i + 1), lat, lon}
	}
	return docs
}

func ratePlans() []ratePlan {
	room := func(rate, inclusive float64, code, text string) roomType {
		return roomType{rate, code, text, rate, inclusive}
	}
	docs := []ratePlan{
		{"1", "RACK", "2015-04-09", "2015-04-10", room(109, 123.17, "KNG", "King sized bed")},
		{"2", "RACK", "2015-04-09", "2015-04-10", room(139, 153.09, "QN", "Queen sized bed")},
		{"3", "RACK", "2015-04-09", "2015-04-10", room(109, 123.17, "KNG", "King sized bed")},
	}
	for i := 9; i <= hotelCount; i += 3 {
		out := "2015-04-24"
		if i%2 == 0 {
			out = "2015-04-17"
		}
		p := prices[i%5]
		docs = append(docs, ratePlan{
			fmt.Sprint(i), "RACK", "2015-04-09", out,
			room(p[0], p[1], "KNG", "King sized bed"),
		})
	}
	return docs
}

func profiles() []hotelProfile {
	docs := make([]hotelProfile, hotelCount)
	for i := range docs {
		lat, lon := place(i + 1)
		h := known[min(i, len(known)-1)]
		if i >= len(known) {
			h.phone = fmt.Sprintf("(415) 284-40%02d", i+1)
		}
		docs[i] = hotelProfile{
			ID: fmt.Sprint(i + 1), Name: h.name, PhoneNumber: h.phone,
			Description: fmt.Sprintf("%s, %s %s: rooms and suites near the sights of San Francisco.", h.name, h.number,
				h.street),
			Address: hotelAddress{h.number, h.street, "San Francisco", "CA", "United States", h.postal, lat, lon},
		}
	}
	return docs
}

func recommendables() []recommendable {
	docs := make([]recommendable, hotelCount)
	for i := range docs {
		lat, lon := place(i + 1)
		rate, price := 135.0, 179.0
		switch {
		case i < len(known):
			rate, price = known[i].rate, known[i].price
		case (i+1)%3 == 0:
			rate, price = prices[(i+1)%5][0], prices[(i+1)%5][1]
		}
		docs[i] = recommendable{fmt.Sprint(i + 1), lat, lon, rate, price}
	}
	return docs
}

func users() []account {
	docs := make([]account, userCount)
	for i := range docs {
		docs[i] = account{fmt.Sprintf("Cornell_%d", i), passwordSum(strings.Repeat(fmt.Sprint(i), 10))}
	}
	return docs
}

func capacities() []capacity {
	docs := make([]capacity, hotelCount)
	for i := range docs {
		n := 200
		if i >= len(known) {
			n = [3]int{200, 300, 250}[(i+1)%3]
		}
		docs[i] = capacity{fmt.Sprint(i + 1), n}
	}
	return docs
}

func reservations() []booking {
	return []booking{{HotelID: "4", CustomerName: "Alice", InDate: "2015-04-09", OutDate: "2015-04-10", Number: 1}}
}

// nightsOf counts the rooms taken by bookings of one night each.
func nightsOf(bookings []booking) []night {
	var docs []night
	for _, b := range bookings {
		docs = append(docs, night{nightID(b.HotelID, b.InDate), b.HotelID, b.InDate, b.Number})
	}
	return docs
}
