// Package astronomy is the Astronomy Shop, the demo of OpenTelemetry: a shop for telescopes, made of services that
// speak gRPC and HTTP to each other. Visitors come in through frontend-proxy.
//
//	frontend-proxy (HTTP :8080)
//	  /             frontend
//	    /api/products         product-catalog; currency
//	    /api/recommendations  recommendation -> product-catalog
//	    /api/data             ad
//	    /api/product-reviews  product-reviews -> llm, product-catalog
//	    /api/cart             cart -> valkey-cart
//	    /api/shipping         shipping -> quote
//	    /api/checkout         checkout -> cart, product-catalog, currency, shipping, payment, email, kafka
//	  /images/      image-provider
//	  /flagservice/ flagd
//	  /grafana/     grafana -> Prometheus, jaeger
//	  /otlp-http/   otel-collector
//
// Orders go through Kafka to accounting, which keeps them in PostgreSQL, and to fraud-detection. Services ask flagd
// for feature flags, each of which makes one of them misbehave; see flags.go. Names, ports, messages, data and flags
// are those of the demo's release 2.2. [Image] has all services as programs; [App] has the manifests.
package astronomy
