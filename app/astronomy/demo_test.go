package astronomy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// fact is something that a component has: of a kind, and with a name.
type fact struct{ component, kind, name string }

// TestDemo compares the shop with what the demo deploys. Whatever is otherwise is in the table, with the reason.
func TestDemo(t *testing.T) {
	data, err := os.ReadFile("testdata/demo.tsv")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[fact]bool{}
	here := facts(t)
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "", "", "")[:6]
		key, demo, other, why := fact{f[0], f[1], f[2]}, f[3], f[4], f[5]
		if wanted[key] {
			t.Errorf("%v is there twice", key)
		}
		wanted[key] = true
		if (other == "") != (why == "") || other == demo && other != "" {
			t.Errorf("%v: what is otherwise needs a reason, and what is not needs none", key)
		}
		want := demo
		if other != "" {
			want = other
		}
		value, found := here[key]
		switch {
		case want == "-" && found:
			t.Errorf("%v is here, as %q", key, value)
		case want != "-" && !found:
			t.Errorf("%v is not here", key)
		case want != "-" && want != "*" && value != want:
			t.Errorf("%v is %q, want %q", key, value, want)
		}
	}
	for key := range here {
		if !wanted[key] {
			t.Errorf("%v is not in the table", key)
		}
	}
	if len(wanted) < 250 {
		t.Errorf("the table has %d facts", len(wanted))
	}
}

// facts are those of the shop's manifests, and of what it says of itself.
func facts(t *testing.T) map[fact]string {
	objects, err := manifest.Read(astronomy.App().Manifests)
	if err != nil {
		t.Fatal(err)
	}
	all := map[fact]string{}
	for _, u := range objects {
		switch u.GetKind() {
		case "Service":
			for _, p := range typed[v1.Service](t, u).Spec.Ports {
				all[fact{u.GetName(), "listens", p.Name}] = strconv.Itoa(int(p.Port))
			}
		case "Deployment":
			pod := typed[appsv1.Deployment](t, u).Spec.Template.Spec
			for _, c := range pod.InitContainers {
				all[fact{u.GetName(), "waits", c.Name}] = ""
			}
			for _, c := range pod.Containers {
				all[fact{u.GetName(), "memory", c.Name}] = c.Resources.Limits.Memory().String()
				for _, e := range c.Env {
					all[fact{u.GetName(), "env", e.Name}] = e.Value
				}
			}
		}
	}
	for _, s := range astronomy.App().Services {
		for _, c := range s.Calls {
			all[fact{s.Name, "calls", c}] = ""
		}
	}
	return all
}

func typed[T any](t *testing.T, u *unstructured.Unstructured) *T {
	t.Helper()
	var v T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &v); err != nil {
		t.Fatal(err)
	}
	return &v
}

// Every service sends its spans, in the way that its variables say, and so do browsers. Who calls whom is as the shop
// says: calls of servers that send spans show in them.
func TestTraces(t *testing.T) {
	f := deploy(t)
	silent := map[string]bool{"grafana": true, "load-generator": true, "postgresql": true, "valkey-cart": true, "kafka": true, "flagd": true, "jaeger": true, "otel-collector": true}
	wanted := map[string]bool{"load-generator -> frontend-web": true}
	for _, s := range astronomy.App().Services {
		for _, c := range s.Calls {
			if !silent[c] {
				wanted[s.Name+" -> "+c] = true
			}
		}
	}
	kittest.Get(t, f.d.User(), "http://grafana:3000/api/health") // There are no Services here that have other ports.
	if err := f.assistant("HQTGWGPNH4"); err != nil {
		t.Fatal(err)
	}
	f.eventually("there are spans of every service", func() error {
		body, err := f.get("/jaeger/ui/api/services")
		var services struct{ Data []string }
		if err == nil {
			err = json.Unmarshal([]byte(body), &services)
		}
		for name := range facts(t) {
			if err == nil && name.kind == "env" && name.name == "OTEL_SERVICE_NAME" && !slices.Contains(services.Data, name.component) {
				err = fmt.Errorf("no spans of %s", name.component)
			}
		}
		return err
	})
	f.eventually("there are calls of all", func() error {
		body, err := f.get("/jaeger/ui/api/dependencies?endTs=" + strconv.FormatInt(time.Now().UnixMilli(), 10))
		var calls struct {
			Data []struct{ Parent, Child string }
		}
		if err == nil {
			err = json.Unmarshal([]byte(body), &calls)
		}
		seen := map[string]bool{}
		for _, c := range calls.Data {
			seen[c.Parent+" -> "+c.Child] = true
		}
		var missing []string
		for c := range wanted {
			if !seen[c] {
				missing = append(missing, c)
			}
		}
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("nobody has seen %q", missing)
		}
		return err
	})
}
