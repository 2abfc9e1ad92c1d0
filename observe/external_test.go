package observe

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Telemetry that somebody has is asked at its URL, with the path and the password in it. It is asked for little at a time.
func TestExternal(t *testing.T) {
	var searches atomic.Int64
	m := http.NewServeMux()
	m.HandleFunc("/prom/api/v1/alerts", func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		reply(`{"status":"success","data":{"alerts":[{"labels":{"alertname":"A","namespace":"shop"},"annotations":{},"state":"firing","activeAt":"2026-03-01T12:00:00Z","value":"1"}]}}`)(w, r)
	})
	m.HandleFunc("GET /trace/api/services", reply(`{"data":["frontend"]}`))
	m.HandleFunc("GET /trace/api/traces", func(w http.ResponseWriter, r *http.Request) {
		searches.Add(1)
		if limit := r.URL.Query().Get("limit"); limit != "200" {
			t.Errorf("asked for %s traces at once", limit)
		}
		reply(`{"data":[`+jaegerTrace+`]}`)(w, r)
	})
	srv := httptest.NewServer(m)
	defer srv.Close()
	o := fake(t, http.NotFoundHandler()) // The cluster has none.
	err := o.Use(External{
		Prometheus: strings.Replace(srv.URL, "http://", "http://me:secret@", 1) + "/prom", Jaeger: srv.URL + "/trace/",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if list, err := o.Alerts(t.Context(), "shop"); err != nil || len(list) != 1 || list[0].Name != "A" {
		t.Errorf("alerts %v, %v", list, err)
	}
	file, err := o.ExportTraces(t.Context(), Window{Namespace: "shop", From: at.Add(-24 * time.Hour), To: at}, t.TempDir(), CSV)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "geo.Geo/Nearby") != 1 {
		t.Errorf("%s, %v", text, err)
	}
	if n := searches.Load(); n > externalRequests {
		t.Errorf("a day of traces took %d requests", n)
	}
	for _, wrong := range []External{{Prometheus: "localhost:9090"}, {Jaeger: "ftp://x"}, {Jaeger: "http://"}, {Prometheus: "http://[::1"}} {
		if err := o.Use(wrong); err == nil || !strings.Contains(err.Error(), "is no URL such as") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
