package sockshop

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is Sock Shop.
func App() *app.App {
	of := func(name string, calls ...string) app.Service {
		return app.Service{Name: name, Kind: "service", Calls: calls}
	}
	services := []app.Service{
		of("front-end", "catalogue", "carts", "user", "orders", "session-db"),
		of("catalogue", "catalogue-db"),
		of("carts", "carts-db"),
		of("orders", "user", "carts", "payment", "shipping", "orders-db"),
		of("payment"),
		of("shipping", "rabbitmq"),
		{Name: "queue-master", Kind: "service", Calls: []string{"rabbitmq"}, Worker: true},
		of("user", "user-db"),
		{Name: "catalogue-db", Kind: "infrastructure", Port: 3306, Secret: "catalogue-db"},
		{Name: "carts-db", Kind: "mongodb"},
		{Name: "orders-db", Kind: "mongodb"},
		{Name: "user-db", Kind: "mongodb"},
		{Name: "session-db", Kind: "redis"},
		{Name: "rabbitmq", Kind: "infrastructure", Port: 5672},
		{Name: "jaeger", Kind: "infrastructure", Port: 16686},
	}
	for i := range services {
		services[i].Ask = questions[services[i].Name]
	}
	return &app.App{
		Name: "sock-shop", Title: "Sock Shop", Namespace: "sock-shop",
		Description: "A shop for socks, made of services that call each other over HTTP. Each keeps its data in a " +
			"store of its own: MySQL, MongoDB or Redis. Shipments go through RabbitMQ.",
		Operations: []string{
			"Look at the socks, all of them, by tag, or one",
			"Register, and log in",
			"Put socks into a cart",
			"Order what is in the cart, with an address and a card",
			"List orders",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "front-end", Port: 80},
		Label:     "name",
		Services:  services,
		Mix:       "sock-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard:     []string{"/catalogue/{words}"},
	}
}
