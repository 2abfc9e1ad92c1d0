package fault

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/app"
)

// A Service may name its target port, or leave it out, as those that charts make do.
func TestTargetPortForms(t *testing.T) {
	for _, tt := range []struct{ name, port, right string }{
		{"number", "{port: 80, targetPort: 8080}", `"value": 8080}`},
		{"name", "{port: 80, targetPort: http}", `"value": "http"}`},
		{"none", "{port: 8080}", `"value": 8080}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &app.App{
				Name: "ports-" + tt.name, Namespace: "test", Services: []app.Service{{Name: "web", Kind: "service"}},
				Manifests: fstest.MapFS{"web.yaml": {Data: []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: nginx, ports: [{name: http, containerPort: 8080}]}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [` + tt.port + `]}
`)}},
			}
			k, err := Find(Kinds(), "misconfig_k8s")
			if err != nil {
				t.Fatal(err)
			}
			target := Target{App: a, Service: "web"}
			f, err := k.New(target, nil)
			if err != nil {
				t.Fatal(err)
			}
			if m := f.(*misconfigured); len(m.changes) != 1 {
				t.Errorf("changes %v", m.changes)
			}
			fix, err := k.Fix(target, nil)
			if err != nil || len(fix) != 1 || !strings.Contains(fix[0], tt.right) {
				t.Errorf("fix %q, %v; want %s", fix, err, tt.right)
			}
			o, err := read(a)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := o.port("web"); !ok {
				t.Error("it has no port that clients use")
			}
		})
	}
}
