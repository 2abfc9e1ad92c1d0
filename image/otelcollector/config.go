package otelcollector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
)

// config is the configuration, with all components that it has.
type config struct {
	receivers, processors, exporters, connectors, extensions map[string]any // by ID, as the types below
	service                                                  serviceConfig
}

type serviceConfig struct {
	Extensions []string                  `yaml:"extensions"`
	Pipelines  map[string]pipelineConfig `yaml:"pipelines"`
	Telemetry  struct {
		Metrics struct {
			Level   string `yaml:"level"`
			Address string `yaml:"address"`
			Readers []struct {
				Pull struct {
					Exporter struct {
						Prometheus struct {
							Host string `yaml:"host"`
							Port int    `yaml:"port"`
						} `yaml:"prometheus"`
					} `yaml:"exporter"`
				} `yaml:"pull"`
			} `yaml:"readers"`
		} `yaml:"metrics"`
		Logs struct {
			Level    string `yaml:"level"`
			Encoding string `yaml:"encoding"`
		} `yaml:"logs"`
		Resource map[string]string `yaml:"resource"`
	} `yaml:"telemetry"`
}

type pipelineConfig struct {
	Receivers  []string `yaml:"receivers"`
	Processors []string `yaml:"processors"`
	Exporters  []string `yaml:"exporters"`
}

type endpointConfig struct {
	Endpoint       string `yaml:"endpoint"`
	MaxRecvMsgSize int    `yaml:"max_recv_msg_size_mib"`
	CORS           any    `yaml:"cors"`
	Auth           any    `yaml:"-"`
}

type otlpReceiver struct {
	Protocols struct {
		GRPC *endpointConfig `yaml:"grpc"`
		HTTP *endpointConfig `yaml:"http"`
	} `yaml:"protocols"`
}

type kafkaReceiver struct {
	Brokers         []string      `yaml:"brokers"`
	ProtocolVersion string        `yaml:"protocol_version"`
	Scrapers        []string      `yaml:"scrapers"`
	Interval        time.Duration `yaml:"collection_interval"`
	ClusterAlias    string        `yaml:"cluster_alias"`
}

type memoryLimiter struct {
	CheckInterval   time.Duration `yaml:"check_interval"`
	Limit           int64         `yaml:"limit_mib"`
	Spike           int64         `yaml:"spike_limit_mib"`
	Percentage      int64         `yaml:"limit_percentage"`
	SpikePercentage int64         `yaml:"spike_limit_percentage"`
}

type batchProcessor struct {
	Timeout time.Duration `yaml:"timeout"`
	Size    int           `yaml:"send_batch_size"`
	MaxSize int           `yaml:"send_batch_max_size"`
}

type resourceProcessor struct {
	Attributes []struct {
		Key    string `yaml:"key"`
		Value  any    `yaml:"value"`
		From   string `yaml:"from_attribute"`
		Action string `yaml:"action"`
	} `yaml:"attributes"`
}

type otlpExporter struct {
	Endpoint    string        `yaml:"endpoint"`
	Timeout     time.Duration `yaml:"timeout"`
	Compression string        `yaml:"compression"`
	TLS         struct {
		Insecure bool `yaml:"insecure"`
	} `yaml:"tls"`
	Queue struct {
		Enabled   *bool `yaml:"enabled"`
		Size      int   `yaml:"queue_size"`
		Consumers int   `yaml:"num_consumers"`
	} `yaml:"sending_queue"`
	Retry struct {
		Enabled *bool         `yaml:"enabled"`
		Initial time.Duration `yaml:"initial_interval"`
		Max     time.Duration `yaml:"max_interval"`
		Elapsed time.Duration `yaml:"max_elapsed_time"`
	} `yaml:"retry_on_failure"`
}

type debugExporter struct {
	Verbosity string `yaml:"verbosity"`
}

type prometheusExporter struct {
	Endpoint  string        `yaml:"endpoint"`
	Namespace string        `yaml:"namespace"`
	Expire    time.Duration `yaml:"metric_expiration"`
	Resource  struct {
		Enabled bool `yaml:"enabled"`
	} `yaml:"resource_to_telemetry_conversion"`
	Stamps bool `yaml:"send_timestamps"`
}

type spanmetricsConnector struct {
	Namespace string `yaml:"namespace"`
	Histogram struct {
		Unit     string `yaml:"unit"`
		Explicit struct {
			Buckets []time.Duration `yaml:"buckets"`
		} `yaml:"explicit"`
	} `yaml:"histogram"`
	Dimensions []struct {
		Name    string  `yaml:"name"`
		Default *string `yaml:"default"`
	} `yaml:"dimensions"`
	Flush time.Duration `yaml:"metrics_flush_interval"`
	Limit int           `yaml:"aggregation_cardinality_limit"`
}

type healthExtension struct {
	Endpoint string `yaml:"endpoint"`
	Path     string `yaml:"path"`
}

// kinds are the components that there are, with their defaults.
var kinds = map[string]map[string]func() any{
	"receivers": {
		"otlp":         func() any { return &otlpReceiver{} },
		"kafkametrics": func() any { return &kafkaReceiver{Interval: time.Minute} },
	},
	"processors": {
		"memory_limiter": func() any { return &memoryLimiter{CheckInterval: time.Second} },
		"batch":          func() any { return &batchProcessor{Timeout: 200 * time.Millisecond, Size: 8192} },
		"resource":       func() any { return &resourceProcessor{} },
	},
	"exporters": {
		"otlp":       func() any { return &otlpExporter{Timeout: 5 * time.Second} },
		"otlp_grpc":  func() any { return &otlpExporter{Timeout: 5 * time.Second} },
		"debug":      func() any { return &debugExporter{Verbosity: "basic"} },
		"prometheus": func() any { return &prometheusExporter{Expire: 5 * time.Minute} },
	},
	"connectors": {
		"spanmetrics": func() any {
			return &spanmetricsConnector{Namespace: "traces.span.metrics", Flush: time.Minute, Limit: 1000}
		},
		"span_metrics": func() any {
			return &spanmetricsConnector{Namespace: "traces.span.metrics", Flush: time.Minute, Limit: 1000}
		},
	},
	"extensions": {"health_check": func() any { return &healthExtension{Path: "/"} }},
}

const maxConfig = 256 << 10

var healthPath = regexp.MustCompile(`^/[A-Za-z0-9_./-]*$`)

// maxComponents is how many components of a kind there may be.
const maxComponents = 50

var variable = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)

// parseConfig reads a configuration, and checks it. The error has all that is wrong.
func parseConfig(env *kit.Env, data []byte) (*config, error) {
	if len(data) > maxConfig {
		return nil, fmt.Errorf("the configuration has more than %d bytes", maxConfig)
	}
	if nesting.Depth(string(data)) > 100 {
		return nil, errors.New("the configuration is nested too deep")
	}
	text := variable.ReplaceAllStringFunc(string(data), func(s string) string {
		m := variable.FindStringSubmatch(s)
		if v := env.Getenv(m[1]); v != "" {
			return v
		}
		return m[2]
	})
	var file struct {
		Receivers  map[string]yaml.Node `yaml:"receivers"`
		Processors map[string]yaml.Node `yaml:"processors"`
		Exporters  map[string]yaml.Node `yaml:"exporters"`
		Connectors map[string]yaml.Node `yaml:"connectors"`
		Extensions map[string]yaml.Node `yaml:"extensions"`
		Service    yaml.Node            `yaml:"service"`
	}
	if err := strict([]byte(text), &file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot unmarshal the configuration: %w", err)
	}
	c := &config{}
	var errs []error
	for _, part := range []struct {
		name string
		from map[string]yaml.Node
		to   *map[string]any
	}{
		{"receivers", file.Receivers, &c.receivers},
		{"processors", file.Processors, &c.processors},
		{"exporters", file.Exporters, &c.exporters},
		{"connectors", file.Connectors, &c.connectors},
		{"extensions", file.Extensions, &c.extensions},
	} {
		*part.to = map[string]any{}
		if len(part.from) > maxComponents {
			return nil, fmt.Errorf("there are more than %d %s", maxComponents, part.name)
		}
		for _, id := range slices.Sorted(maps.Keys(part.from)) {
			node := part.from[id]
			v, err := component(part.name, id, &node)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			(*part.to)[id] = v
		}
	}
	if data, err := yaml.Marshal(&file.Service); err != nil {
		errs = append(errs, err)
	} else if err := strict(data, &c.service); err != nil && !errors.Is(err, io.EOF) {
		errs = append(errs, fmt.Errorf("'service' %w", err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return c, c.check()
}

func strict(data []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	return d.Decode(into)
}

// component reads one component.
func component(part, id string, node *yaml.Node) (any, error) {
	kind, _, _ := strings.Cut(id, "/")
	make := kinds[part][kind]
	if make == nil {
		return nil, fmt.Errorf("'%s' unknown type: %q for id: %q (valid values: %v)", part, kind, id,
			slices.Sorted(maps.Keys(kinds[part])))
	}
	v := make()
	data, err := yaml.Marshal(node)
	if err != nil {
		return nil, fmt.Errorf("'%s' error reading configuration for %q: %w", part, id, err)
	}
	if err := strict(data, v); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("'%s' error reading configuration for %q: %w", part, id, err)
	}
	return v, nil
}

// check finds what does not fit together.
func (c *config) check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.service.Pipelines) == 0 {
		add("service::pipelines: service must have at least one pipeline")
	}
	has := func(list map[string]any, id string) bool { return list[id] != nil }
	for _, name := range slices.Sorted(maps.Keys(c.service.Pipelines)) {
		p := c.service.Pipelines[name]
		kind, _, _ := strings.Cut(name, "/")
		if kind != "traces" && kind != "metrics" {
			add("service::pipelines::%s: pipelines of %s are not there, only of traces and metrics", name, kind)
		}
		if len(p.Receivers) == 0 || len(p.Exporters) == 0 {
			add("service::pipelines::%s: must have at least one receiver and one exporter", name)
		}
		for _, id := range p.Receivers {
			if !has(c.receivers, id) && !has(c.connectors, id) {
				add("service::pipelines::%s: references receiver %q which is not configured", name, id)
			}
			if _, kafka := c.receivers[id].(*kafkaReceiver); kafka && kind != "metrics" {
				add("service::pipelines::%s: receiver %q has no %s", name, id, kind)
			}
			if has(c.connectors, id) && kind != "metrics" {
				add("service::pipelines::%s: connector %q gives metrics, not %s", name, id, kind)
			}
		}
		for _, id := range p.Processors {
			if !has(c.processors, id) {
				add("service::pipelines::%s: references processor %q which is not configured", name, id)
			}
		}
		for _, id := range p.Exporters {
			if !has(c.exporters, id) && !has(c.connectors, id) {
				add("service::pipelines::%s: references exporter %q which is not configured", name, id)
			}
			if _, prom := c.exporters[id].(*prometheusExporter); prom && kind != "metrics" {
				add("service::pipelines::%s: exporter %q takes no %s", name, id, kind)
			}
			if has(c.connectors, id) && kind != "traces" {
				add("service::pipelines::%s: connector %q takes traces, not %s", name, id, kind)
			}
		}
	}
	for _, id := range c.service.Extensions {
		if !has(c.extensions, id) {
			add("service::extensions: references extension %q which is not configured", id)
		}
	}
	errs = append(errs, c.checkComponents()...)
	return errors.Join(errs...)
}

// checkComponents finds settings that make no sense.
func (c *config) checkComponents() (errs []error) {
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for id, v := range c.exporters {
		switch e := v.(type) {
		case *otlpExporter:
			if e.Endpoint == "" {
				add("exporters::%s: requires a non-empty \"endpoint\"", id)
			}
			if !e.TLS.Insecure && !strings.HasPrefix(e.Endpoint, "http://") {
				add("exporters::%s: TLS is not there; set tls::insecure to true", id)
			}
			if e.Queue.Size < 0 || e.Queue.Size > maxQueue || e.Timeout < 0 {
				add("exporters::%s: sending_queue::queue_size must be from 1 to %d", id, maxQueue)
			}
		case *prometheusExporter:
			if e.Endpoint == "" {
				add("exporters::%s: expecting a non-empty \"endpoint\"", id)
			}
		case *debugExporter:
			if !slices.Contains([]string{"basic", "normal", "detailed"}, e.Verbosity) {
				add("exporters::%s: verbosity level %q is not supported", id, e.Verbosity)
			}
		}
	}
	for id, v := range c.processors {
		switch p := v.(type) {
		case *memoryLimiter:
			if p.CheckInterval <= 0 || p.Limit <= 0 && p.Percentage <= 0 || p.Percentage > 100 {
				add("processors::%s: 'check_interval', and 'limit_mib' or 'limit_percentage', must be above 0", id)
			}
		case *batchProcessor:
			if p.Timeout < 0 || p.Size < 0 || p.MaxSize < 0 || p.MaxSize > 0 && p.MaxSize < p.Size {
				add("processors::%s: send_batch_max_size must be at least send_batch_size, and nothing negative", id)
			}
		case *resourceProcessor:
			for _, a := range p.Attributes {
				if a.Key == "" || !slices.Contains([]string{"insert", "update", "upsert", "delete"}, a.Action) {
					add("processors::%s: an attribute needs a key, and an action: insert, update, upsert or delete", id)
				}
			}
		}
	}
	for id, v := range c.connectors {
		if s, ok := v.(*spanmetricsConnector); ok && (s.Flush < time.Second || s.Limit < 1 || s.Limit > maxSeries ||
			s.Histogram.Unit != "" && s.Histogram.Unit != "ms" || len(s.Histogram.Explicit.Buckets) > 50 ||
			len(s.Dimensions) > 10) {
			add("connectors::%s: metrics_flush_interval is at least 1s, aggregation_cardinality_limit 1 to %d, "+
				"histogram::unit ms, and there are up to 50 buckets and 10 dimensions", id, maxSeries)
		}
	}
	for id, v := range c.extensions {
		if h, ok := v.(*healthExtension); ok && !healthPath.MatchString(h.Path) {
			add("extensions::%s: %q is no path", id, h.Path)
		}
	}
	for id, v := range c.receivers {
		switch r := v.(type) {
		case *otlpReceiver:
			if r.Protocols.GRPC == nil && r.Protocols.HTTP == nil {
				add("receivers::%s: must specify at least one protocol when using the OTLP receiver", id)
			}
		case *kafkaReceiver:
			if len(r.Brokers) == 0 || r.Interval < time.Second {
				add("receivers::%s: needs brokers, and a collection_interval of at least 1s", id)
			}
		}
	}
	return errs
}
