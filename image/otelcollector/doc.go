// Package otelcollector is the OpenTelemetry Collector as a [kit.Program], with the image that people write into
// manifests as "otel/opentelemetry-collector-contrib".
//
// It reads its configuration as the original does, and runs what it says: receivers otlp and kafkametrics, processors
// memory_limiter, batch and resource, exporters otlp, prometheus and debug, the connector spanmetrics and the extension
// health_check, in pipelines of traces and metrics. A component that it does not have, or a setting that it does not
// know, is an error that names it, and the collector does not start.
//
//	registry.Register(otelcollector.Image(tools))
//
// What waits for an exporter is bounded in number and bytes, and so are the series that are kept; what is dropped is
// counted, in the collector's own metrics on port 8888.
package otelcollector
