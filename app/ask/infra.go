package ask

import (
	"encoding/json"
	"net/http"
	"slices"
)

// Consul returns a question for Consul: who leads, and whether it knows a service.
func Consul(service string) Question {
	return All(
		Page("/v1/status/leader", func(status int, body []byte) error {
			var leader string
			if status != http.StatusOK || json.Unmarshal(body, &leader) != nil || leader == "" {
				return Wrong("%d %s", status, body)
			}
			return nil
		}),
		Page("/v1/catalog/services", func(status int, body []byte) error {
			var services map[string][]string
			if status != http.StatusOK || json.Unmarshal(body, &services) != nil {
				return Wrong("%d %s", status, body)
			}
			if _, ok := services["consul"]; !ok {
				return Wrong("without a service consul: %s", body)
			}
			if _, ok := services[service]; !ok {
				return Wrong("without a service %s: %s", service, body)
			}
			return nil
		}),
	)
}

// Jaeger returns a question for Jaeger: which operations of a service it has traces of, and the latest trace.
func Jaeger(service string) Question {
	return All(
		Page("/api/services", func(status int, body []byte) error {
			var reply struct{ Data []string }
			if status != http.StatusOK || json.Unmarshal(body, &reply) != nil || !slices.Contains(reply.Data, service) {
				return Wrong("%d %s", status, body)
			}
			return nil
		}),
		Page("/api/traces?limit=1&service="+service, func(status int, body []byte) error {
			var reply struct {
				Data []struct {
					TraceID string
					Spans   []struct{ TraceID string }
				}
			}
			if status != http.StatusOK || json.Unmarshal(body, &reply) != nil {
				return Wrong("%d %s", status, body)
			}
			for _, t := range reply.Data {
				for _, s := range t.Spans {
					if s.TraceID != t.TraceID {
						return Wrong("%s", body)
					}
				}
			}
			return nil
		}),
	)
}
