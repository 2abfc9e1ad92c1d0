package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const stores = `
apiVersion: v1
kind: Pod
metadata: {name: cache, labels: {app: cache}}
spec:
  containers: [{name: redis, image: "redis:6.2", ports: [{containerPort: 6379}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: nginx, image: "nginx:1.29"}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: mongo
        image: mongo:4.4.6
        ports: [{containerPort: 27017}]
        readinessProbe: {tcpSocket: {port: 27017}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data/db}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// store is a value in a store, written and read by commands in its container.
type store struct {
	pod string
	set func(value string) []string
	get []string
}

var stored = []store{
	{
		pod: "cache",
		set: func(v string) []string { return []string{"redis-cli", "set", "k", v} },
		get: []string{"redis-cli", "get", "k"},
	},
	{
		pod: "db-0",
		set: func(v string) []string {
			return []string{"mongo", "--quiet", "--eval", fmt.Sprintf(`db.t.updateOne({_id: 1}, {$set: {v: %q}}, {upsert: true})`, v)}
		},
		get: []string{"mongo", "--quiet", "--eval", "db.t.findOne().v"},
	},
}

func (s store) write(t *testing.T, a *agent, value string) {
	t.Helper()
	a.run(t, "", append([]string{"exec", s.pod, "--"}, s.set(value)...))
}

func (s store) read(t *testing.T, a *agent) string {
	t.Helper()
	ready(t, a.ns, s.pod)
	return labtest.Await(t, func() (string, error) { // Its server may just start.
		out, err := a.kubectl(t, "", append([]string{"exec", s.pod, "--"}, s.get...)...)
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return strings.TrimSpace(out), nil
	})
}

// container is the state of a pod's only one.
func container(t *testing.T, ns, pod string) v1.ContainerStatus {
	t.Helper()
	p, err := lab.Client.CoreV1().Pods(ns).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil || len(p.Status.ContainerStatuses) != 1 {
		t.Fatalf("%v: %+v", err, p.Status)
	}
	return p.Status.ContainerStatuses[0]
}

// What commands in containers have written is taken back with the transaction. Only those containers are started again,
// and a disturbance goes on.
func TestCommandsAreTakenBack(t *testing.T) {
	a := newAgent(t)
	labApplies(t, a.ns, stores)
	web := ready(t, a.ns, "web")
	for _, s := range stored {
		ready(t, a.ns, s.pod)
		s.write(t, a, "before")
	}
	stop, err := lab.Cloud.Disturb(t.Context(), cloud.Disturbance{
		Selector: cloud.Selector{Namespace: a.ns, Labels: map[string]string{"app": "web"}},
		Pod:      &cloud.PodChaos{Action: cloud.PodFailure},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t.Context())
	disturbed := func() {
		t.Helper()
		if c, err := lab.Cloud.Dial(t.Context(), "tcp", web.Status.PodIP+":80"); err == nil {
			c.Close()
			t.Error("the disturbance is over")
		}
	}
	disturbed()
	beside := container(t, a.ns, "web")

	a.run(t, "", []string{"create", "--raw", "/lab/begin", "-f", "/dev/null"})
	for _, s := range stored {
		s.write(t, a, "after")
		if got := s.read(t, a); got != "after" {
			t.Errorf("%s has %q", s.pod, got)
		}
	}
	a.run(t, "", []string{"exec", "db-0", "--", "sh", "-c", "rm -r /data/db/* /etc/mongo*; echo 10.0.0.1 x >> /etc/hosts"})
	began := time.Now()
	out := a.run(t, "", []string{"create", "--raw", "/lab/abort", "-f", "/dev/null"},
		"container redis: its files, volumes and data are as they were", "All that they changed is as it was")
	t.Logf("abort took %v:\n%s", time.Since(began), out)
	for _, s := range stored {
		if got := s.read(t, a); got != "before" {
			t.Errorf("%s has %q after the abort", s.pod, got)
		}
		labtest.Await(t, func() (any, error) {
			c := container(t, a.ns, s.pod)
			if last := c.LastTerminationState.Terminated; c.RestartCount != 1 || last == nil || last.ExitCode != 137 {
				return nil, fmt.Errorf("%s: %+v", s.pod, c)
			}
			return nil, nil
		})
	}
	if hosts := a.run(t, "", []string{"exec", "db-0", "--", "cat", "/etc/hosts"}); strings.Contains(hosts, "10.0.0.1 x") {
		t.Errorf("/etc/hosts is %s", hosts)
	}
	if now := container(t, a.ns, "web"); now.RestartCount != 0 || now.ContainerID != beside.ContainerID ||
		!now.State.Running.StartedAt.Equal(&beside.State.Running.StartedAt) {
		t.Errorf("another container was started again: %+v", now)
	}
	disturbed()

	t.Run("the pod is deleted meanwhile", func(t *testing.T) {
		db := stored[1]
		before := ready(t, a.ns, db.pod)
		a.run(t, "", []string{"create", "--raw", "/lab/begin", "-f", "/dev/null"})
		db.write(t, a, "after")
		a.run(t, "", []string{"delete", "pod", db.pod})
		labtest.Await(t, func() (any, error) {
			if p := ready(t, a.ns, db.pod); p.UID == before.UID {
				return nil, fmt.Errorf("it is still there")
			}
			return nil, nil
		})
		a.run(t, "", []string{"create", "--raw", "/lab/abort", "-f", "/dev/null"}, "its persistent volumes are as they were")
		if got := db.read(t, a); got != "before" {
			t.Errorf("it has %q", got)
		}
	})

	t.Run("undo after commit", func(t *testing.T) {
		cache := stored[0]
		a.run(t, "", []string{"create", "--raw", "/lab/begin", "-f", "/dev/null"})
		cache.write(t, a, "committed")
		a.run(t, "", []string{"create", "--raw", "/lab/commit", "-f", "/dev/null"}, "is committed")
		a.run(t, "", []string{"create", "--raw", "/lab/undo", "-f", "/dev/null"}, "not restored: its transaction is over")
		if got := cache.read(t, a); got != "committed" {
			t.Errorf("it has %q", got)
		}
	})
}
