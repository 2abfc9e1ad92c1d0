package astronomy

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	grafanaCost = 200 * time.Microsecond
	// grafanaPrefix is under which path frontend-proxy has it, which leaves the path as it is.
	grafanaPrefix  = "/grafana"
	grafanaVersion = "12.3.1"
	// provisioned has the files that say which sources of data there are.
	provisioned  = "/etc/grafana/provisioning/datasources"
	maxSources   = 50
	maxProvision = 256 << 10 // bytes of a file
	maxNesting   = 20
)

// source is where Grafana gets data from, as its provisioning files say.
type source struct {
	ID        int    `yaml:"-" json:"id"`
	UID       string `yaml:"uid" json:"uid"`
	Org       int    `yaml:"-" json:"orgId"`
	Name      string `yaml:"name" json:"name"`
	Type      string `yaml:"type" json:"type"`
	Access    string `yaml:"access" json:"access"`
	URL       string `yaml:"url" json:"url"`
	IsDefault bool   `yaml:"isDefault" json:"isDefault"`
	ReadOnly  bool   `yaml:"-" json:"readOnly"`

	base *url.URL
}

// asked says which paths of each type of source can be asked: what reads, and nothing that manages.
var asked = map[string]func(path string) bool{
	"prometheus": func(path string) bool {
		return strings.HasPrefix(path, "api/v1/") && !strings.HasPrefix(path, "api/v1/admin/")
	},
	"jaeger": func(path string) bool { return strings.HasPrefix(path, "api/") },
}

// grafanaMain is the program grafana: it asks the sources of data that its files name. It draws nothing.
func grafanaMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "grafana")
	if err != nil {
		return err
	}
	defer s.Close()
	g := &grafana{s: s}
	if g.sources, err = readSources(env); err != nil {
		return s.Fatal(ctx, "Datasource provisioning error", err)
	}
	address := ":" + cmp.Or(env.Getenv("GF_SERVER_HTTP_PORT"), "3000")
	s.Log.Info("HTTP Server Listen", slog.String("address", address), slog.Int("datasources", len(g.sources)))
	return s.ServeHTTP(ctx, g.handler(), address)
}

// readSources reads all files, in the order of their names.
func readSources(env *kit.Env) (list []source, err error) {
	entries, err := env.FS.ReadDir(provisioned)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", provisioned, err)
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		name := path.Join(provisioned, e.Name())
		data, err := env.ReadFile(name)
		if err != nil {
			return nil, err
		}
		more, err := parseSources(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, more...)
	}
	if len(list) > maxSources {
		return nil, fmt.Errorf("%s: there are %d datasources; at most %d are taken", provisioned, len(list), maxSources)
	}
	for i := range list {
		list[i].ID, list[i].Org, list[i].ReadOnly = i+1, 1, true
		for _, before := range list[:i] {
			if before.UID == list[i].UID {
				return nil, fmt.Errorf("%s: two datasources have the uid %q", provisioned, before.UID)
			}
		}
	}
	return list, nil
}

// parseSources reads a file. As Grafana does, it passes over fields that it does not know.
func parseSources(data []byte) ([]source, error) {
	if len(data) > maxProvision || nesting.Depth(string(data)) > maxNesting {
		return nil, fmt.Errorf("want at most %d bytes, nested at most %d deep", maxProvision, maxNesting)
	}
	var file struct {
		Sources []source `yaml:"datasources"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for i := range file.Sources {
		d := &file.Sources[i]
		d.UID, d.Access = cmp.Or(d.UID, d.Name), cmp.Or(d.Access, "proxy")
		base, err := url.Parse(d.URL)
		switch {
		case d.Name == "" || d.Type == "":
			return nil, fmt.Errorf("datasource %d: want a name and a type", i+1)
		case err != nil || base.Scheme != "http" || base.Host == "":
			return nil, fmt.Errorf("datasource %s: url %q: want one such as http://jaeger:16686", d.Name, d.URL)
		}
		d.base = base.JoinPath("/") // What is joined to a base without a path would have no slash before it.
	}
	return file.Sources, nil
}

type grafana struct {
	s       *service.Service
	sources []source
}

// find returns a source, or says that there is none.
func (g *grafana) find(w http.ResponseWriter, r *http.Request) *source {
	i := slices.IndexFunc(g.sources, func(d source) bool { return d.UID == r.PathValue("uid") })
	if i < 0 {
		unanswered(w, http.StatusNotFound, "Data source not found")
		return nil
	}
	return &g.sources[i]
}

// unanswered says in Grafana's form why there is no answer.
func unanswered(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, "{\"message\":%q}\n", message)
}

func (g *grafana) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h http.HandlerFunc) {
		_, route, _ := strings.Cut(pattern, " ")
		g.s.HandleFunc(mux, pattern, route, grafanaCost, h)
	}
	handle("GET /api/health", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]string{"database": "ok", "version": grafanaVersion})
	})
	handle("GET /api/datasources", func(w http.ResponseWriter, _ *http.Request) { reply(w, g.sources) })
	handle("GET /api/datasources/uid/{uid}", func(w http.ResponseWriter, r *http.Request) {
		if d := g.find(w, r); d != nil {
			reply(w, d)
		}
	})
	proxy := g.proxy()
	handle("GET /api/datasources/proxy/uid/{uid}/{path...}", proxy)
	handle("POST /api/datasources/proxy/uid/{uid}/{path...}", proxy)
	handle("GET /{$}", g.page)
	all := http.NewServeMux()
	all.Handle("/", mux)
	all.Handle(grafanaPrefix+"/", http.StripPrefix(grafanaPrefix, mux))
	return all
}

// proxy asks a source what a client asks of it.
func (g *grafana) proxy() http.HandlerFunc {
	transport := g.s.HTTPClient(0).Transport
	return func(w http.ResponseWriter, r *http.Request) {
		d := g.find(w, r)
		if d == nil {
			return
		}
		ask := strings.TrimPrefix(path.Clean("/"+r.PathValue("path")), "/")
		if may := asked[d.Type]; may == nil || !may(ask) {
			unanswered(w, http.StatusForbidden, "proxy attempted to access a path that is not for queries")
			return
		}
		(&httputil.ReverseProxy{
			Transport: transport,
			Rewrite: func(q *httputil.ProxyRequest) {
				// JoinPath would undo the encoding of what is decoded already, and so ask for another path.
				u := *d.base
				u.Path, u.RawPath = path.Join("/", u.Path, ask), ""
				q.Out.URL = &u
				q.Out.URL.RawQuery, q.Out.Host = q.In.URL.RawQuery, d.base.Host
				for _, name := range []string{"Authorization", "Cookie", "Traceparent"} {
					q.Out.Header.Del(name) // They are Grafana's own, and the transport writes its own.
				}
			},
			ErrorLog: slog.NewLogLogger(g.s.Log.Handler(), slog.LevelWarn),
			ErrorHandler: func(w http.ResponseWriter, q *http.Request, err error) {
				g.s.Log.WarnContext(q.Context(), "Proxy request failed", slog.String("datasource", d.Name),
					slog.Any("error", err))
				unanswered(w, http.StatusBadGateway, "Bad Gateway")
			},
		}).ServeHTTP(w, r)
	}
}

var sourcesPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Grafana</title></head><body>
<h1>Data sources</h1>
<table>
<tr><th>Name</th><th>Type</th><th>UID</th><th>URL</th></tr>
{{range .}}<tr><td>{{.Name}}</td><td>{{.Type}}</td><td>{{.UID}}</td><td>{{.URL}}</td></tr>
{{end}}</table>
</body></html>
`))

func (g *grafana) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = sourcesPage.Execute(w, g.sources) // It is the client that went away.
}
