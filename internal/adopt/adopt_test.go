package adopt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
)

const shop = "../../examples/shop/"

// library is one with the faults and nothing else.
func library(t *testing.T) *problem.Library {
	t.Helper()
	l, err := problem.New(nil, fault.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// options adopt a source as the shop.
func options(t *testing.T, source, name string) Options {
	t.Helper()
	return Options{
		Source: source, Entry: "front:80", Mix: shop + "mixes/corner-shop.yaml", Name: name,
		Dir: filepath.Join(t.TempDir(), "made"), Library: library(t),
	}
}

// calls are who calls whom.
func calls(a *app.App) map[string][]string {
	m := map[string][]string{}
	for _, s := range a.Services {
		if len(s.Calls) > 0 {
			m[s.Name] = s.Calls
		}
	}
	return m
}

func TestAdoptManifests(t *testing.T) {
	o := options(t, shop+"manifests", "adopted")
	r, err := Adopt(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"front": {"catalog", "prices"}}, calls(r.App)); diff != "" {
		t.Error("calls:\n" + diff)
	}
	if r.App.Namespace != "test-adopted" || r.App.Label != "app" || r.App.Host() != "front.test-adopted:80" {
		t.Errorf("%+v", r.App)
	}
	// The entry is asked what users ask; of the others, probes tell no more than a path.
	if !slices.Equal(r.Weak, []string{"catalog", "prices"}) || len(r.Unreached) != 0 || len(r.Notes) != 0 {
		t.Errorf("weak %v, unreached %v, notes %v", r.Weak, r.Unreached, r.Notes)
	}
	for _, id := range []string{
		"scale_pods_to_zero_prices_adopted-{task}-1", "misconfig_k8s_catalog_adopted-{task}-1",
		"assign_to_non_existent_node_front_adopted-{task}-1", "memory_stress_catalog_adopted-{task}-1",
		"network_delay_prices_adopted-{task}-1", "pod_kill_front_adopted-{task}-1",
	} {
		if !slices.Contains(r.Documents, id) {
			t.Errorf("there is no %s in %v", id, r.Documents)
		}
	}
	// What would not show, or has no place to be, is not there.
	for _, id := range r.Documents {
		for _, kind := range []string{"cpu_stress", "network_bandwidth", "disk_woreout", "revoke_auth", "redeploy_without_pv", "misconfig_app", "wrong_bin_usage", "noop"} {
			if strings.HasPrefix(id, kind) {
				t.Errorf("%s does not fit", id)
			}
		}
	}
	// It is read as everybody reads it, with the mitigation and the healthy twins.
	l, err := library(t).With(r.Dir, filepath.Join(r.Dir, ProblemsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"misconfig_k8s_catalog_adopted-mitigation-1", "pod_kill_front_adopted-incident-1-healthy", "network_delay_prices_adopted-mitigation-1"} {
		if _, err := l.Find(id); err != nil {
			t.Error(err)
		}
	}
	p, err := l.Find("misconfig_k8s_catalog_adopted-analysis-1")
	if err != nil || p.Answer().Cause.FaultType != "Misconfiguration" || p.Answer().Components[0].Name != "catalog" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Adopt(o); err == nil || !strings.Contains(err.Error(), "is there already, and not empty") {
		t.Errorf("got %v", err)
	}
}

func TestAdoptChart(t *testing.T) {
	o := options(t, "testdata/chart", "mine")
	o.Entry, o.Values = "mine-web:http", []string{"testdata/values.yaml"}
	r, err := Adopt(o)
	if err != nil {
		t.Fatal(err)
	}
	// The name is in a variable, and another one in a Secret; the Service of the first names its port.
	want := map[string][]string{"mine-web": {"mine-api"}, "mine-api": {"mine-store"}}
	if diff := cmp.Diff(want, calls(r.App)); diff != "" {
		t.Error("calls:\n" + diff)
	}
	if s, _ := r.App.Service("mine-store"); s.Kind != "redis" {
		t.Errorf("store: %+v", s)
	}
	if r.App.Description != "A chart." || r.App.Label != "app" || !slices.Equal(r.Unreached, []string{"mine-db", "mine-aside"}) {
		t.Errorf("%+v, unreached %v", r.App, r.Unreached)
	}
	for _, part := range []string{
		"left out: ClusterRole mine-reader (chart/templates/other.yaml, as rendered:1): it is of the whole cluster",
		"left out: ValidatingWebhookConfiguration mine-hook", "left out: Job mine-migrate", "it is a hook of Helm",
		"left out: Widget mine-widget", "left out: CustomResourceDefinition widgets.example.com",
		"DaemonSet mine-logs is deployed, and gets no problems: no Service leads to it",
		"pods get the label app with the name of their Deployment, StatefulSet or DaemonSet",
	} {
		if !strings.Contains(strings.Join(r.Notes, "\n"), part) {
			t.Errorf("no note %q in\n%s", part, strings.Join(r.Notes, "\n"))
		}
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, "manifests", "deployment-mine-api.yaml"))
	if err != nil || !strings.Contains(string(text), "replicas: 2") { // a value of the file
		t.Errorf("%s, %v", text, err)
	}
	if !slices.Contains(r.Documents, "misconfig_k8s_mine-api_mine-{task}-1") {
		t.Errorf("documents %v", r.Documents)
	}
	for _, id := range r.Documents {
		if strings.Contains(id, "aside") {
			t.Errorf("%s: users do not reach it", id)
		}
	}
}

// Where services find each other by a registry, manifests do not tell who calls whom: traces do.
func TestAdoptWithTraces(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, hotel.App().Manifests); err != nil {
		t.Fatal(err)
	}
	mix := filepath.Join(t.TempDir(), "mix.yaml")
	text, err := fs.ReadFile(hotel.App().Mixes, hotel.App().Mix+".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mix, text, 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t, dir, "inn")
	o.Entry, o.Mix, o.Kinds = "frontend:5000", mix, []string{"scale_pods_to_zero"}
	o.Links = []observe.Link{{Parent: "frontend", Child: "search"}, {Parent: "search", Child: "geo"}, {Parent: "who", Child: "geo"}}
	r, err := Adopt(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"frontend", "search", "geo"} {
		if !slices.Contains(r.Documents, "scale_pods_to_zero_"+name+"_inn-{task}-1") {
			t.Errorf("no problem of %s in %v", name, r.Documents)
		}
	}
	if !slices.Contains(r.Unreached, "user") || !strings.Contains(strings.Join(r.Notes, "\n"), "no workload of the same name for those of traces or --calls: who") {
		t.Errorf("unreached %v, notes %v", r.Unreached, r.Notes)
	}
	if s, _ := r.App.Service("mongodb-geo"); s.Kind != "mongodb" {
		t.Errorf("mongodb-geo: %+v", s)
	}
}

// Every mistake is told in one line, with what to do about it, and leaves nothing behind.
func TestAdoptErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	write := func(text string) string {
		if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return broken
	}
	front, err := os.ReadFile(shop + "manifests/front.yaml")
	if err != nil {
		t.Fatal(err)
	}
	added := fmt.Sprintf("%s:%d", broken, strings.Count(string(front), "\n")+2) // Where more begins.
	with := func(more string) func(*Options) {
		return func(o *Options) { o.Source = write(string(front) + "---\n" + more) }
	}
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no chart", func(o *Options) { o.Source = "bitnami/nginx" }, "there is no chart and no manifest bitnami/nginx: a chart of a repository is fetched first, with 'helm pull CHART'"},
		{"broken", func(o *Options) { o.Source = write("kind: List\n---\nkind: Service\nmetadata: {name: x\nspec: {}\n") }, broken + ":"},
		{"tab", func(o *Options) { o.Source = write("kind: Service\n---\nkind: Service\n\tname: x\n") }, broken + ":"},
		{"no object", func(o *Options) { o.Source = write("a: b\n") }, broken + ":1: it is no object of Kubernetes"},
		{"no name", with("apiVersion: v1\nkind: Service\n"), added + ": Service has no metadata.name"},
		{"twice", with(string(front)), "ConfigMap front is in " + broken + ":1 already"},
		{"nothing", func(o *Options) { o.Source = t.TempDir() }, "has no objects of Kubernetes"},
		{"values of none", func(o *Options) { o.Values = []string{"x"} }, "--values is for charts"},
		{"no Service", func(o *Options) { o.Entry = "frnt:80" }, `--entry frnt:80: there is no Service "frnt"; did you mean "front"?`},
		{"no port", func(o *Options) { o.Entry = "front" }, "--entry front: say which port: the Service has 80"},
		{"other port", func(o *Options) { o.Entry = "front:81" }, "--entry front:81: the Service front has no port 81; it has 80"},
		{"no mix", func(o *Options) { o.Mix = "absent.yaml" }, "--mix: open absent.yaml"},
		{"wrong mix", func(o *Options) { o.Mix = write("name: x\noperations:\n- {name: a, wieght: 1, path: /}\n") }, `:3: unknown field "wieght"; did you mean "weight"?`},
		{"name", func(o *Options) { o.Name = "My App" }, `--name "My App": want small letters, digits and '-'`},
		{"namespace", func(o *Options) { o.Namespace = "kube-system" }, "--namespace kube-system is the cluster's"},
		{"namespaces", with("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: z}\n"), "the objects are in several namespaces, and an application has one: ConfigMap a (" + added + ") is in x"},
		{"fault", func(o *Options) { o.Kinds = []string{"pod_kil"} }, `--faults: there is no fault "pod_kil"; did you mean "pod_kill"?`},
		{"no workload", func(o *Options) {
			o.Source = write("apiVersion: v1\nkind: Service\nmetadata: {name: front}\nspec: {ports: [{port: 80}]}\n")
		}, "there is no Deployment or StatefulSet among the 1 objects"},
		{"kustomization", func(o *Options) {
			o.Source = t.TempDir()
			if err := os.WriteFile(filepath.Join(o.Source, "kustomization.yaml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "adopt what it makes: 'kubectl kustomize"},
		{"dependency", func(o *Options) { o.Source = "testdata/incomplete" }, "it needs redis, which is not in its directory charts: run 'helm dependency build' in it first"},
		{"template", func(o *Options) { o.Source = "testdata/failing" }, "chart testdata/failing: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, shop+"manifests", "errors")
			tt.change(&o)
			_, err := Adopt(o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if list, _ := os.ReadDir(filepath.Dir(o.Dir)); len(list) != 0 {
				t.Errorf("it has left %v", list)
			}
		})
	}
}

// A Service's name alone is often just a word.
func TestAddresses(t *testing.T) {
	o := options(t, shop+"manifests", "words")
	src, err := load(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := src.system(o)
	if err != nil {
		t.Fatal(err)
	}
	is := s.addressOf(s.service("catalog"))
	for text, want := range map[string]bool{
		"URL=http://catalog/x": true, "A=catalog:80": true, "A=redis://u:p@catalog": true, "CATALOG_HOST=catalog": true,
		"A=catalog.test-words": true, "A=catalog.other.svc.cluster.local": true, `  "catalogAddr": "catalog",`: true,
		"--to=catalog:80": true, "A=$(CATALOG_SERVICE_HOST)": true, "x\nserver catalog;\ny": true,
		"TOPIC=catalog": false, "A=my-catalog:80": false, "A=catalog:8080": false, "A=catalogue.example.com": false,
		"we have a catalog": false, "http://catalog-2/": false, "A=catalog-host": false,
	} {
		if got := is(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
