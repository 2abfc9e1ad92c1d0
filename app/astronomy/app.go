package astronomy

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is the Astronomy Shop.
func App() *app.App {
	part := func(name string, calls ...string) app.Service {
		return app.Service{Name: name, Kind: "service", Calls: calls}
	}
	services := []app.Service{
		part("frontend-proxy", "frontend", "image-provider", "flagd", "load-generator", "jaeger",
			"grafana", "otel-collector"),
		part("frontend", "ad", "cart", "checkout", "currency", "product-catalog", "recommendation", "shipping",
			"product-reviews"),
		part("ad", "flagd"),
		part("cart", "valkey-cart", "flagd"),
		part("checkout", "cart", "currency", "email", "payment", "product-catalog", "shipping", "kafka", "flagd"),
		part("currency"),
		part("email", "flagd"),
		part("payment", "flagd"),
		part("product-catalog", "postgresql", "flagd"),
		part("product-reviews", "postgresql", "llm", "product-catalog", "flagd"),
		part("llm", "flagd"),
		part("quote"),
		part("recommendation", "product-catalog", "flagd"),
		part("shipping", "quote"),
		{Name: "accounting", Kind: "service", Calls: []string{"kafka", "postgresql"}, Worker: true},
		{Name: "fraud-detection", Kind: "service", Calls: []string{"kafka", "flagd"}, Worker: true},
		part("image-provider"),
		part("load-generator", "frontend-proxy", "flagd"),
		part("flagd"),
		part("grafana", "jaeger"),
		{Name: "valkey-cart", Kind: "redis"},
		{Name: "kafka", Kind: "infrastructure"},
		{Name: "postgresql", Kind: "infrastructure"},
		{Name: "otel-collector", Kind: "infrastructure", Calls: []string{"jaeger", "kafka"}, Port: 8888},
		{Name: "jaeger", Kind: "infrastructure", Port: 16686},
	}
	for i := range services {
		services[i].Ask = questions[services[i].Name]
	}
	return &app.App{
		Name: "astronomy-shop", Title: "Astronomy Shop", Namespace: "astronomy-shop",
		Description: "A shop for telescopes and what goes with them, made of services that call each other over " +
			"gRPC and HTTP and send orders through Kafka. Carts are kept in Valkey, products and orders in " +
			"PostgreSQL. Services ask flagd for feature flags, and send their traces to an OpenTelemetry collector.",
		Operations: []string{
			"Browse products, with their pictures, and prices in one of 33 currencies",
			"Get recommendations and advertisements",
			"Read what buyers say of products, and ask an assistant about it",
			"Put products into a cart, and look at it",
			"Ask what shipping costs",
			"Order what is in the cart",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "frontend-proxy", Port: 8080},
		Label:     "app.kubernetes.io/component",
		Services:  services,
		Mix:       "astronomy-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard:     []string{"/api/products/{words}"},
	}
}
