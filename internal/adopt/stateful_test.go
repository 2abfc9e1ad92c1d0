package adopt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/fault"
)

// stateful is a shop whose database is a StatefulSet with a volume, whose cache is one of three pods that are reached by
// their names alone, and whose nodes each have a proxy.
const stateful = `apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      containers:
      - name: main
        image: nginx:1.29
        env: [{name: DB_HOST, value: db}, {name: CACHE_HOST, value: cache}, {name: PROXY_URL, value: "http://proxy/"}]
        ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: front}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: mongo
        image: mongo:4.4.6
        ports: [{containerPort: 27017}]
        resources: {limits: {memory: 256Mi}}
        volumeMounts: [{name: data, mountPath: /data/db}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 27017}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: cache}
spec:
  serviceName: cache
  replicas: 3
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec: {containers: [{name: redis, image: "redis:7", ports: [{containerPort: 6379}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: cache}
spec: {clusterIP: None, selector: {app: cache}, ports: [{port: 6379}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: proxy}
spec:
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec: {containers: [{name: main, image: "nginx:1.29", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: proxy}
spec: {selector: {app: proxy}, ports: [{port: 80}]}
`

// StatefulSets and DaemonSets that users reach get the problems that show there, and their solutions name them.
func TestAdoptStateful(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(stateful), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t, file, "stateful")
	o.Entry = "front:80"
	r, err := Adopt(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unreached) > 0 || len(r.Notes) > 0 {
		t.Errorf("unreached %v, notes %v", r.Unreached, r.Notes)
	}
	for name, kind := range map[string]string{"db": "mongodb", "cache": "redis", "proxy": "service"} {
		if s, _ := r.App.Service(name); s.Kind != kind {
			t.Errorf("%s is %q, want %q", name, s.Kind, kind)
		}
	}
	for id, want := range map[string]bool{
		"scale_pods_to_zero_db": true, "assign_to_non_existent_node_db": true, "misconfig_k8s_db": true, "memory_stress_db": true,
		"network_loss_db": true, "pod_kill_db": true,
		// Two of the three go on, and whoever knows their names needs no Service.
		"scale_pods_to_zero_cache": true, "assign_to_non_existent_node_cache": false, "misconfig_k8s_cache": false,
		// There is one on each node, however many that are.
		"scale_pods_to_zero_proxy": false, "assign_to_non_existent_node_proxy": false, "misconfig_k8s_proxy": true, "pod_failure_proxy": true,
	} {
		if got := slices.Contains(r.Documents, id+"_stateful-{task}-1"); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	l, err := library(t).With(r.Dir, filepath.Join(r.Dir, ProblemsDir))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{
		"scale_pods_to_zero_db":          {"kubectl scale statefulset/db --replicas=1", "kubectl rollout status statefulset/db --timeout=60s"},
		"assign_to_non_existent_node_db": {"kubectl patch statefulset/db", "kubectl delete pod -l app=db --wait=false", "kubectl rollout status statefulset/db"},
	} {
		p, err := l.Find(id + "_stateful-mitigation-1")
		if err != nil {
			t.Fatal(err)
		}
		commands, err := p.Solution()
		if err != nil || len(commands) != len(want) {
			t.Fatalf("%s: %q, %v", id, commands, err)
		}
		for i := range want {
			if !strings.Contains(commands[i], want[i]) {
				t.Errorf("%s: %q, want %q", id, commands[i], want[i])
			}
		}
		// To roll back everything goes for Deployments.
		if _, fix := p.TrueFixes()[fault.RollBackEverything]; fix {
			t.Errorf("%s: to roll back everything passes for a fix", id)
		}
		// A volume of its own holds its pod on the node.
		p, err = l.Find("network_loss_db_stateful-incident-1")
		if err != nil {
			t.Fatal(err)
		}
		if fix, err := p.Solution(); err != nil || len(fix) > 0 {
			t.Errorf("the pod with the volume is to be moved: %q, %v", fix, err)
		}
	}
	p, err := l.Find("assign_to_non_existent_node_front_stateful-mitigation-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, fix := p.TrueFixes()[fault.RollBackEverything]; !fix {
		t.Error("of a Deployment a rollback is no fix")
	}
}

func TestAdoptStatefulErrors(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"same name":     {"kind: DaemonSet\nmetadata: {name: proxy}", "kind: DaemonSet\nmetadata: {name: db}", "there are a StatefulSet and a DaemonSet db"},
		"no containers": {"spec: {containers: [{name: redis, image: \"redis:7\", ports: [{containerPort: 6379}]}]}", "spec: {}", "StatefulSet cache has no containers"},
	} {
		file := filepath.Join(t.TempDir(), "shop.yaml")
		text := strings.Replace(stateful, tt.old, tt.new, 1)
		if text == stateful {
			t.Fatalf("%s: nothing is changed", name)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options(t, file, "stateful")
		o.Entry = "front:80"
		if _, err := Adopt(o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
