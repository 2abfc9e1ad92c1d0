package flightticket

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// calls are which functions invoke which others, through the controller.
var calls = map[string][]string{
	"query-for-travel": {
		"query-for-station-id-by-station-name", "get-train-type-by-train-type-id", "get-route-by-route-id",
		"get-price-by-route-id-and-train-type",
	},
	"seat-service": {
		"get-route-by-trip-id", "get-sold-tickets", "get-train-type-by-trip-id", "query-config-entity-by-config-name",
	},
	"get-route-by-trip-id":      {"get-route-by-route-id"},
	"get-train-type-by-trip-id": {"get-train-type-by-train-type-id"},
	"save-order-info":           {"drawback"},
	"cancel-service":            {"get-order-by-id", "save-order-info", "drawback"},
}

// functions are all of them, in the order of the manifests.
var functions = []string{
	"query-for-travel", "query-for-station-id-by-station-name", "get-route-by-route-id",
	"get-train-type-by-train-type-id", "get-price-by-route-id-and-train-type", "seat-service", "get-route-by-trip-id",
	"get-train-type-by-trip-id", "get-sold-tickets", "query-config-entity-by-config-name", "save-order-info",
	"get-order-by-id", "drawback", "cancel-service",
}

// App is FlightTicket.
func App() *app.App {
	services := []app.Service{{Name: "owdev-controller", Kind: "service", Ask: knowsActions}}
	for _, name := range functions {
		services[0].Calls = append(services[0].Calls, name)
		services = append(services, app.Service{
			Name: name, Kind: "service", Calls: append(append([]string{}, calls[name]...), "redis"), Elastic: true,
			Ask: questions[name],
		})
	}
	services[0].Calls = append(services[0].Calls, "redis")
	services = append(services, app.Service{Name: "redis", Kind: "redis"},
		app.Service{Name: "jaeger", Kind: "infrastructure", Port: 16686, Ask: traces})
	return &app.App{
		Name: "flight-ticket", Title: "Flight Ticket", Namespace: "openwhisk",
		Description: "A shop for flights that is made of functions on a serverless layer like OpenWhisk. People " +
			"search flights, book seats, read their orders and cancel them. Each function is a Deployment, which the " +
			"layer scales to no pods when nobody invokes it, and up again when somebody does.",
		Operations: []string{
			"Search: what a part of a route costs",
			"See how many seats are left on a flight",
			"Book a seat, and pay for it",
			"Look at an order, and at the seats of a flight that are sold",
			"Cancel an order, and get money back",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "owdev-controller", Port: 3233},
		Label:     "app",
		Services:  services,
		Mix:       "flight-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard:     []string{"/api/v1/namespaces/_/activations?limit={words}"},
	}
}
