// Package jaeger is the image jaegertracing/all-in-one: it receives spans over OTLP, keeps them in
// memory, and answers Jaeger's query HTTP API.
//
//	4317   OTLP over gRPC
//	4318   OTLP over HTTP, in protobuf and JSON
//	16686  the query API: /api/services, /api/services/{service}/operations, /api/operations,
//	       /api/traces, /api/traces/{id}, /api/dependencies
//	14269  health and metrics
//
// The API answers in Jaeger's own JSON. Unlike the original, /api/traces honours lookback, and exclude
// leaves out traces that touch a service, so that an export need not read a trace once for each
// service. Jaeger's own web pages are built with other tools; a small one of ours searches, and shows
// traces and dependencies.
//
// Spans are kept packed: names, keys and frequent values are numbers into one table, so that a span
// takes some 60 bytes. The oldest traces go when there are more than --memory.max-traces, or when
// they take more than --memory.max-bytes, which the original does not have. What is held is stated
// as the container's memory.
package jaeger
