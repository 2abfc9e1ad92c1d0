package astronomy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

const provisioning = `apiVersion: 1
deleteDatasources: [{name: Old, orgId: 1}]
datasources:
- {name: Prometheus, uid: webstore-metrics, type: prometheus, url: "http://prometheus/base", isDefault: true, jsonData: {timeInterval: 5s}}
- {name: Lake, type: mysql, url: "http://prometheus"}
`

// A client of Grafana's API finds the sources and asks them what reads, over GET and POST, and nothing else.
func TestGrafana(t *testing.T) {
	w := kittest.New(t)
	store, m, user := w.Machine("prometheus", "10.244.0.2"), w.Machine("grafana", "10.244.0.3"), w.Machine("user", "10.244.0.4")
	m.Install(Image(nil))
	m.Write(provisioned+"/default.yaml", provisioning)
	m.Write(provisioned+"/notes.txt", "{")
	ln, err := store.Env().Net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s host %s cookies %d query %s", r.Method, r.URL.Path, r.URL.RawQuery, r.Host, len(r.Cookies()), r.FormValue("query"))
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	m.Start(grafanaMain, "grafana")
	user.WaitListen("grafana:3000")
	const proxied = "/api/datasources/proxy/uid/webstore-metrics/"
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/api/health", "", 200, `"database":"ok"`},
		{"GET", "/grafana/api/health", "", 200, `"database":"ok"`},
		{"GET", "/grafana/", "", 200, "<td>webstore-metrics</td>"},
		{"GET", "/api/datasources", "", 200, `"uid":"Lake"`},
		{"GET", "/grafana/api/datasources/uid/webstore-metrics", "", 200, `"id":1,"uid":"webstore-metrics","orgId":1,"name":"Prometheus","type":"prometheus","access":"proxy","url":"http://prometheus/base","isDefault":true,"readOnly":true`},
		{"GET", "/api/datasources/uid/none", "", 404, `{"message":"Data source not found"}`},
		{"GET", proxied + "api/v1/query?query=up", "", 200, "GET /base/api/v1/query query=up host prometheus cookies 0 query up"},
		{"POST", "/grafana" + proxied + "api/v1/query_range", "query=up", 200, "POST /base/api/v1/query_range  host prometheus cookies 0 query up"},
		{"DELETE", proxied + "api/v1/series", "", 405, ""},
		{"POST", proxied + "api/v1/admin/tsdb/delete_series", "", 403, "not for queries"},
		{"POST", proxied + "-/reload", "", 403, "not for queries"},
		{"GET", proxied + "api/v1/%2e%2e/%2e%2e/-/quit", "", 403, "not for queries"},
		// What is left of two encodings when one is undone is a name, and not to be undone again.
		{"GET", proxied + "api/v1/%2561dmin/tsdb", "", 200, "GET /base/api/v1/%61dmin/tsdb "},
		{"GET", proxied + "api/v1/%61dmin/tsdb", "", 403, "not for queries"},
		{"GET", proxied + "api/v1/x%2f..%2fadmin/tsdb", "", 403, "not for queries"},
		{"GET", "/api/datasources/proxy/uid/Lake/api/v1/query", "", 403, "not for queries"},
		{"GET", "/api/datasources/proxy/uid/none/api/v1/query", "", 404, "Data source not found"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://grafana:3000"+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Cookie", "grafana_session=1")
		code, body := 0, ""
		resp, err := user.Client().Do(req)
		if err == nil {
			code, body = resp.StatusCode, readAll(t, resp)
		}
		if err != nil || code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %v, %d %s, want %d %s", tt.method, tt.path, err, code, body, tt.code, tt.want)
		}
	}
	srv.Close()
	<-done
	if got := kittest.Get(t, user, "http://grafana:3000"+proxied+"api/v1/query"); got.Code != 502 {
		t.Errorf("without Prometheus: %d %s", got.Code, got.Body)
	}
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What is wrong with a file is said, and the program does not start.
func TestGrafanaProvisioning(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"no name", "datasources: [{type: jaeger, url: 'http://jaeger'}]", "datasource 1: want a name and a type"},
		{"no address", "datasources: [{name: Jaeger, type: jaeger}]", `datasource Jaeger: url ""`},
		{"another protocol", "datasources: [{name: X, type: jaeger, url: 'file:///etc/passwd'}]", `url "file:///etc/passwd"`},
		{"no YAML", "datasources: [", "yaml:"},
		{"deep", "datasources: " + strings.Repeat("[", 1000), "nested at most"},
		{"long", strings.Repeat("#", maxProvision+1), "bytes"},
		{"twice", "datasources: [{name: X, type: jaeger, url: 'http://x'}, {name: X, type: jaeger, url: 'http://x'}]", `the uid "X"`},
		{"many", "datasources:\n" + strings.Repeat("- {name: X, type: jaeger, url: 'http://x'}\n", maxSources+1), "at most 50"},
	} {
		m := kittest.New(t).Machine("grafana", "10.244.0.3")
		m.Write(provisioned+"/default.yaml", tt.file)
		run := m.Start(grafanaMain, "grafana")
		if code := run.Wait(); code == 0 || !strings.Contains(run.Stdout.String()+run.Stderr.String(), strings.ReplaceAll(tt.want, `"`, `\"`)) {
			t.Errorf("%s: exit %d, %s%s, want %s", tt.name, code, run.Stdout, run.Stderr, tt.want)
		}
	}
}
