package trainticket

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is TrainTicket.
func App() *app.App {
	of := func(name string, calls ...string) app.Service {
		return app.Service{Name: name, Kind: "service", Calls: calls}
	}
	services := []app.Service{
		of("ts-gateway-service", "ts-auth-service", "ts-user-service", "ts-station-service", "ts-train-service",
			"ts-route-service", "ts-price-service", "ts-travel-service", "ts-preserve-service", "ts-order-service",
			"ts-inside-payment-service", "ts-cancel-service", "ts-notification-service"),
		of("ts-auth-service", "ts-auth-mongo"),
		of("ts-user-service", "ts-auth-service", "ts-user-mongo"),
		of("ts-station-service", "ts-station-mongo"),
		of("ts-train-service", "ts-train-mongo"),
		of("ts-route-service", "ts-route-mongo"),
		of("ts-price-service", "ts-price-mongo"),
		of("ts-travel-service", "ts-station-service", "ts-route-service", "ts-train-service", "ts-price-service",
			"ts-seat-service", "ts-travel-mongo"),
		of("ts-seat-service", "ts-order-service"),
		of("ts-order-service", "ts-order-mongo"),
		of("ts-preserve-service", "ts-user-service", "ts-travel-service", "ts-seat-service", "ts-order-service",
			"rabbitmq"),
		of("ts-cancel-service", "ts-order-service", "ts-inside-payment-service"),
		of("ts-inside-payment-service", "ts-order-service", "ts-payment-service", "ts-inside-payment-mongo"),
		of("ts-payment-service", "ts-payment-mongo"),
		of("ts-notification-service", "rabbitmq", "ts-notification-mongo"),
	}
	for _, name := range []string{
		"auth", "user", "station", "train", "route", "price", "travel", "order", "inside-payment", "payment",
		"notification",
	} {
		services = append(services, app.Service{Name: "ts-" + name + "-mongo", Kind: "mongodb"})
	}
	services = append(services,
		app.Service{Name: "rabbitmq", Kind: "infrastructure", Port: 5672},
		app.Service{Name: "jaeger", Kind: "infrastructure", Port: 16686})
	for i := range services {
		services[i].Ask = questions[services[i].Name]
	}
	return &app.App{
		Name: "train-ticket", Title: "Train Ticket", Namespace: "train-ticket",
		Description: "A site on which people book seats on trains, made of services that call each other over HTTP. " +
			"Each keeps its data in a MongoDB of its own. Mails about bookings go through RabbitMQ.",
		Operations: []string{
			"Register, and log in",
			"Look at stations, routes, trains and prices",
			"Find trips between two stations at a date, with prices and the seats that are left",
			"Book a seat, and get a mail about it",
			"Pay for an order, or cancel it",
			"List orders",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "ts-gateway-service", Port: 18888},
		Label:     "app",
		Services:  services,
		Mix:       "train-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard:     []string{"/api/v1/stationservice/stations/id/{words}"},
	}
}
