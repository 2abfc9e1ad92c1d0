package otelcollector

import "github.com/aiopslab/aiopslab/kit"

// Version is the release that this behaves like.
const Version = "0.151.0"

// Image is the collector. The tools, by name, are what the image has in /bin; the public one has none.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names: []string{
			"otel/opentelemetry-collector-contrib",
			"ghcr.io/open-telemetry/opentelemetry-collector-releases/opentelemetry-collector-contrib",
		},
		Tags:       `latest|0\.1[0-9]{2}\.\d`,
		Entrypoint: []string{"/otelcol-contrib"},
		Cmd:        []string{"--config", "/etc/otelcol-contrib/config.yaml"},
		User:       "10001",
		Vars:       map[string]string{"PATH": kit.DefaultPath},
		Programs:   map[string]kit.Program{"/otelcol-contrib": Main},
		Files:      map[string]string{"/etc/otelcol-contrib/config.yaml": defaultConfig, "/tmp/": ""},
		Memory:     90 << 20,
		Size:       350 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	return i
}

const defaultConfig = `receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 0.0.0.0:4317
      http:
        endpoint: 0.0.0.0:4318
processors:
  batch:
exporters:
  debug:
extensions:
  health_check:
    endpoint: 0.0.0.0:13133
service:
  extensions: [health_check]
  pipelines:
    traces:
      receivers: [otlp]
      processors: [batch]
      exporters: [debug]
    metrics:
      receivers: [otlp]
      processors: [batch]
      exporters: [debug]
`
