package astronomy

import "github.com/aiopslab/aiopslab/app/astronomy/demopb"

// product is something that the shop sells. The catalog has it in its database; see manifests/postgresql.yaml.
type product struct {
	id, name, picture string
	cents             int64
	categories        []string
}

// products are what the database is filled with, in the order of their ids.
var products = []product{
	{
		"0PUK6V6EV0", "Solar System Color Imager", "SolarSystemColorImager", 175_00,
		[]string{"accessories", "telescopes"},
	},
	{
		"1YMWWN1N4O", "Eclipsmart Travel Refractor Telescope", "EclipsmartTravelRefractorTelescope", 129_95,
		[]string{"telescopes", "travel"},
	},
	{"2ZYFJ3GM2N", "Roof Binoculars", "RoofBinoculars", 209_95, []string{"binoculars"}},
	{
		"66VCHSJNUP", "Starsense Explorer Refractor Telescope", "StarsenseExplorer", 349_95,
		[]string{"telescopes"},
	},
	{"6E92ZMYYFZ", "Solar Filter", "SolarFilter", 69_95, []string{"accessories", "telescopes"}},
	{
		"9SIQT8TOJO", "Optical Tube Assembly", "OpticalTubeAssembly", 3599_00,
		[]string{"accessories", "telescopes", "assembly"},
	},
	{"HQTGWGPNH4", "The Comet Book", "TheComet", 99, []string{"books"}},
	{"L9ECAV7KIM", "Lens Cleaning Kit", "LensCleaningKit", 21_95, []string{"accessories"}},
	{"LS4PSXUNUM", "Red Flashlight", "RedFlashlight", 57_08, []string{"accessories", "flashlights"}},
	{
		"OLJCESPC7Z", "National Park Foundation Explorascope", "NationalParkFoundationExplorascope", 101_96,
		[]string{"telescopes"},
	},
}

// troubled is the product that fails with productCatalogFailure.
const troubled = "OLJCESPC7Z"

// ad is an advertisement: a product and a line.
func ad(id, text string) *demopb.Ad { return &demopb.Ad{RedirectUrl: "/product/" + id, Text: text} }

// ads are the advertisements by category.
var ads = map[string][]*demopb.Ad{
	"binoculars": {ad("2ZYFJ3GM2N", "Roof Binoculars, half price this week.")},
	"telescopes": {ad("66VCHSJNUP", "Starsense Explorer: a fifth off for beginners.")},
	"accessories": {
		ad("0PUK6V6EV0", "Solar System Color Imager: a third off."),
		ad("6E92ZMYYFZ", "Solar Filters: two for the price of one."),
		ad("L9ECAV7KIM", "Lens Cleaning Kit: buy one, get one free."),
	},
	"assembly": {ad("9SIQT8TOJO", "Optical Tube Assembly: now a tenth off.")},
	"travel":   {ad("1YMWWN1N4O", "Eclipsmart Travel Telescope: one free kit with every second one.")},
}

// person is somebody who buys.
type person struct {
	email, street, zip, city, state, country, currency, card string
	cvv, year, month                                         int32
}

// people are the customers of the load generator.
var people = []person{
	{
		"ada@example.com", "12 Harbour Street", "04101", "Portland", "ME", "United States", "USD",
		"4945-8073-0215-7365", 656, 2039, 1,
	},
	{
		"ben@example.com", "77 Orchard Lane", "97201", "Portland", "OR", "United States", "USD",
		"4193-0364-2621-2992", 555, 2039, 2,
	},
	{
		"clara@example.com", "5 Mill Road", "55401", "Minneapolis", "MN", "United States", "USD",
		"4220-0332-2453-8329", 807, 2039, 3,
	},
	{
		"david@example.com", "310 Canyon Drive", "86001", "Flagstaff", "AZ", "United States", "USD",
		"4364-0562-2415-4991", 103, 2039, 4,
	},
	{
		"emma@example.com", "48 Lighthouse Way", "02840", "Newport", "RI", "United States", "USD",
		"4951-4547-5277-2046", 123, 2039, 5,
	},
	{
		"felix@example.com", "9 Prairie Avenue", "68102", "Omaha", "NE", "United States", "USD",
		"4560-8656-9070-2931", 221, 2039, 6,
	},
	{
		"grace@example.com", "150 Elm Crescent", "K1P 5N2", "Ottawa", "ON", "Canada", "CAD",
		"4375-8584-7195-4065", 193, 2039, 7,
	},
	{
		"henry@example.com", "23 Juniper Court", "80302", "Boulder", "CO", "United States", "USD",
		"4358-9525-4814-5426", 917, 2039, 8,
	},
	{
		"iris@example.com", "640 Bayou Street", "70112", "New Orleans", "LA", "United States", "USD",
		"4124-7201-9860-3959", 946, 2039, 9,
	},
}
