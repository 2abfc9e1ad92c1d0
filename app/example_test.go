package app_test

import (
	"context"
	"fmt"
	"net/http"
	"testing/fstest"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

// visitsImage has one program, which counts visits in memcached.
func visitsImage() kit.Image {
	return kit.Image{
		Names: []string{"example/visits"}, Tags: "v1", Entrypoint: []string{"visits"},
		Programs: map[string]kit.Program{"/bin/visits": visits}, Memory: 10 << 20,
	}
}

func visits(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "visits"})
	if err != nil {
		return err
	}
	defer s.Close()
	cache := s.Memcached("counter:11211")
	mux := http.NewServeMux()
	s.HandleFunc(mux, "GET /", "/", 200*time.Microsecond, func(w http.ResponseWriter, r *http.Request) {
		found, err := service.Cached(r.Context(), s, cache, []string{"visits"}, func(context.Context, []string) (map[string]int, error) {
			return map[string]int{"visits": 0}, nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		service.Keep(r.Context(), s, cache, "visits", found["visits"]+1)
		fmt.Fprintf(w, "You are visitor %d.\n", found["visits"]+1)
	})
	return s.ServeHTTP(ctx, mux, ":8080")
}

// visitsApp is what others know of the application.
func visitsApp() *app.App {
	return &app.App{
		Name: "visits", Title: "Visits", Namespace: "test-visits", Description: "It counts its visitors.",
		Manifests: fstest.MapFS{"visits.yaml": {Data: []byte(visitsManifest)}}, // An embed.FS, if it is a package.
		Frontend:  app.Endpoint{Service: "visits", Port: 8080}, Label: "app",
		Services: []app.Service{{Name: "visits", Kind: "service", Calls: []string{"counter"}}, {Name: "counter", Kind: "memcached"}},
	}
}

const visitsManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: visits}
spec:
  selector: {matchLabels: {app: visits}}
  template:
    metadata:
      labels: {app: visits}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9464"}
    spec:
      containers:
      - name: visits
        image: example/visits:v1
        env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://jaeger:4317"}]
        readinessProbe: {tcpSocket: {port: 8080}}
        resources: {limits: {cpu: "1", memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: visits}
spec: {selector: {app: visits}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: counter}
spec:
  selector: {matchLabels: {app: counter}}
  template:
    metadata: {labels: {app: counter}}
    spec: {containers: [{name: memcached, image: "memcached:1.6"}]}
---
apiVersion: v1
kind: Service
metadata: {name: counter}
spec: {selector: {app: counter}, ports: [{port: 11211}]}
`
