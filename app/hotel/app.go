package hotel

import (
	"embed"
	"io/fs"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml
var files embed.FS

// App is HotelReservation.
func App() *app.App {
	manifests, err := fs.Sub(files, "manifests")
	if err != nil {
		panic(err) // The directory is embedded above.
	}
	store := func(kind string, names ...string) (list []app.Service) {
		for _, n := range names {
			list = append(list, app.Service{Name: n, Kind: kind})
		}
		return list
	}
	services := []app.Service{
		{Name: "frontend", Kind: "service", Calls: []string{"search", "profile", "recommendation", "user", "reservation"}},
		{Name: "search", Kind: "service", Calls: []string{"geo", "rate"}},
		{Name: "geo", Kind: "service", Calls: []string{"mongodb-geo"}},
		{Name: "rate", Kind: "service", Calls: []string{"mongodb-rate", "memcached-rate"}},
		{Name: "profile", Kind: "service", Calls: []string{"mongodb-profile", "memcached-profile"}},
		{Name: "recommendation", Kind: "service", Calls: []string{"mongodb-recommendation"}},
		{Name: "user", Kind: "service", Calls: []string{"mongodb-user"}},
		{Name: "reservation", Kind: "service", Calls: []string{"mongodb-reservation", "memcached-reserve"}},
	}
	services = append(services, store("mongodb", "mongodb-geo", "mongodb-rate", "mongodb-profile", "mongodb-recommendation", "mongodb-user", "mongodb-reservation")...)
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
		Description: "A hotel reservation application built with Go and gRPC. Its services find hotels near a place, show profiles, rates and availability, recommend hotels, check users and take reservations.",
		Operations: []string{
			"Get profile and rates of nearby hotels available during given time periods",
			"Recommend hotels based on user provided metrics",
			"Place reservations",
			"Log in users",
		},
		Manifests: manifests,
		Frontend:  app.Endpoint{Service: "frontend", Port: 5000},
		Label:     "io.kompose.service",
		Services:  services,
		Mix:       "hotel-mixed",
	}
}
