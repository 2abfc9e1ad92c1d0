package hotel

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is HotelReservation.
func App() *app.App {
	store := func(kind string, names ...string) (list []app.Service) {
		for _, n := range names {
			list = append(list, app.Service{Name: n, Kind: kind})
		}
		return list
	}
	services := []app.Service{
		{
			Name: "frontend", Kind: "service",
			Calls: []string{"search", "profile", "recommendation", "user", "reservation"},
		},
		{Name: "search", Kind: "service", Calls: []string{"geo", "rate"}},
		{Name: "geo", Kind: "service", Calls: []string{"mongodb-geo"}},
		{Name: "rate", Kind: "service", Calls: []string{"mongodb-rate", "memcached-rate"}},
		{Name: "profile", Kind: "service", Calls: []string{"mongodb-profile", "memcached-profile"}},
		{Name: "recommendation", Kind: "service", Calls: []string{"mongodb-recommendation"}},
		{Name: "user", Kind: "service", Calls: []string{"mongodb-user"}},
		{Name: "reservation", Kind: "service", Calls: []string{"mongodb-reservation", "memcached-reserve"}},
	}
	services = append(services, store("mongodb", "mongodb-geo", "mongodb-rate", "mongodb-profile",
		"mongodb-recommendation", "mongodb-user", "mongodb-reservation")...)
	services = append(services, store("memcached", "memcached-rate", "memcached-profile", "memcached-reserve")...)
	services = append(services, store("infrastructure", "consul", "jaeger")...)
	for i := range services {
		services[i].Ask = questions[services[i].Name]
		if services[i].Name == "jaeger" {
			services[i].Port = 16686
		}
	}
	return &app.App{
		Name: "hotel-reservation", Title: "Hotel Reservation", Namespace: "test-hotel-reservation",
		Description: "A site on which people find hotels and reserve rooms, made of services that call each " +
			"other over gRPC, " +
			"find each other through Consul, and keep their data in MongoDB and memcached.",
		Operations: []string{
			"Search for hotels near a place that have a room between two dates, with their rates",
			"Recommend hotels by distance, rate or price",
			"Check a user's name and password",
			"Reserve a room",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "frontend", Port: 5000},
		Label:     "io.kompose.service",
		Services:  services,
		Mix:       "hotel-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard: []string{
			"/reservation?inDate={words}&outDate=2015-04-10&hotelId=9&customerName=Cornell_1&username=Cornell_1" +
				"&password=1111111111&number=1",
			"/hotels?inDate={words}&outDate=2015-04-10&lat=37.8375&lon=-122.338",
		},
	}
}
