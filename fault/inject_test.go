package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/cloud"
)

// lab is a cluster that stores what it is told and does nothing, but remembers the patches.
type lab struct {
	*fake.Clientset
	env     *Env
	patches []patch
}

type patch struct {
	resource, name string
	kind           types.PatchType
	manager        string
	body           map[string]any
}

// newLab has the pods of services, ready for an hour, on nodes.
func newLab(t *testing.T, a *app.App, nodes map[string]string) *lab {
	t.Helper()
	var objects []runtime.Object
	for _, s := range a.Services {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: s.Name}}
		objects = append(objects, d)
		if node, ok := nodes[s.Name]; ok {
			objects = append(objects, readyPod(a, s.Name, node, time.Hour))
		}
	}
	l := &lab{Clientset: fake.NewClientset(objects...)}
	l.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		p := action.(clienttesting.PatchActionImpl)
		var body map[string]any
		if err := json.Unmarshal(p.Patch, &body); err != nil {
			t.Error(err)
		}
		l.patches = append(l.patches, patch{p.Resource.Resource, p.Name, p.PatchType, p.PatchOptions.FieldManager, body})
		switch p.Resource.Resource {
		case "services":
			return true, &v1.Service{}, nil
		case "configmaps":
			return true, &v1.ConfigMap{}, nil
		}
		return true, &appsv1.Deployment{}, nil
	})
	l.env = &Env{Client: l, App: a, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}}
	return l
}

func readyPod(a *app.App, service, node string, ago time.Duration) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: service + "-1", Labels: map[string]string{a.Label: service}},
		Spec:       v1.PodSpec{NodeName: node},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{
			{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-ago))},
		}},
	}
}

func bind(t *testing.T, kind string, a *app.App, service, params string) Fault {
	t.Helper()
	k, err := Find(Kinds(), kind)
	if err != nil {
		t.Fatal(err)
	}
	f, err := k.New(Target{App: a, Service: service}, node(t, params))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// field follows a path of names and indices.
func field(v any, path ...any) any {
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p.(string)]
		case []any:
			v = x[p.(int)]
		default:
			return nil
		}
	}
	return v
}

// What is changed is changed as it was deployed: the whole object, by the same field manager, without
// a label or an annotation more.
func TestChanges(t *testing.T) {
	template := func(path ...any) []any { return append([]any{"spec", "template", "spec"}, path...) }
	elsewhere, err := hotel.App().From("r.example/lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind, target, params string
		app                  *app.App
		resource, name       string
		path                 []any
		wrong, right         any // what is at the path
		patches              int // of the injection
	}{
		{"misconfig_k8s", "user-service", "{port: 9999}", social.App(), "services", "user-service", []any{"spec", "ports", 0, "targetPort"}, 9999.0, 9090.0, 1},
		{"scale_pods_to_zero", "user-service", "", social.App(), "deployments", "user-service", []any{"spec", "replicas"}, 0.0, 1.0, 1},
		{"assign_to_non_existent_node", "user-service", "", social.App(), "deployments", "user-service", template("nodeSelector", "kubernetes.io/hostname"), "extra-node", nil, 1},
		{"wrong_bin_usage", "profile", "{binary: geo}", hotel.App(), "deployments", "profile", template("containers", 0, "command", 0), "geo", "profile", 1},
		{"misconfig_app", "geo", "", hotel.App(), "deployments", "geo", template("containers", 0, "image"), "yinfangchen/geo:app3", "aiopslab/hotel-reservation:v1", 1},
		{
			"misconfig_app", "geo", "", elsewhere, "deployments", "geo", template("containers", 0, "image"),
			"r.example/lab/yinfangchen/geo:app3", "r.example/lab/aiopslab/hotel-reservation:v1", 1,
		},
		{
			"auth_miss_mongodb", "url-shorten-mongodb", "", social.App(), "configmaps", "url-shorten-mongodb",
			[]any{"data", "mongod.conf"},
			"net:\n  tls:\n    mode: requireTLS\n    certificateKeyFile: /etc/tls/tls.pem\n    CAFile: /etc/tls/ca.crt\n", "net:\n  tls:\n    mode: disabled\n", 1,
		},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			l := newLab(t, tt.app, nil)
			if tt.kind == "misconfig_k8s" || tt.kind == "auth_miss_mongodb" { // The pods come back.
				l.Tracker().Add(readyPod(tt.app, tt.target, "n1", 0))
				l.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
			}
			f := bind(t, tt.kind, tt.app, tt.target, tt.params)
			if err := f.Inject(t.Context(), l.env); err != nil {
				t.Fatal(err)
			}
			if len(l.patches) != tt.patches {
				t.Fatalf("%d patches: %v", len(l.patches), l.patches)
			}
			for i, p := range l.patches {
				if p.resource != tt.resource || p.name != tt.name || p.kind != types.ApplyPatchType || p.manager != "kubectl" {
					t.Errorf("patch %+v", p)
				}
				if got := field(p.body, tt.path...); !cmp.Equal(got, tt.wrong) {
					t.Errorf("patch %d: %v, want %v", i, got, tt.wrong)
				}
			}
			wrong := l.patches[len(l.patches)-1].body
			l.patches = nil
			if err := f.Recover(t.Context(), l.env); err != nil {
				t.Fatal(err)
			}
			right := l.patches[0].body
			if got := field(right, tt.path...); !cmp.Equal(got, tt.right) {
				t.Errorf("recovered: %v, want %v", got, tt.right)
			}
			for _, path := range [][]any{{"metadata"}, {"spec", "template", "metadata"}, {"spec", "selector"}} {
				if d := cmp.Diff(field(right, path...), field(wrong, path...)); d != "" {
					t.Errorf("%v differs: %s", path, d)
				}
			}
		})
	}
}

// chaos remembers what it was asked for.
type chaos struct {
	asked   []cloud.Disturbance
	stopped int
}

func (c *chaos) Disturb(_ context.Context, d cloud.Disturbance) (func(context.Context) error, error) {
	c.asked = append(c.asked, d)
	return func(context.Context) error { c.stopped++; return nil }, nil
}

func TestDisturbances(t *testing.T) {
	labels := map[string]string{"io.kompose.service": "user"}
	everywhere := cloud.Selector{Namespace: "test-hotel-reservation", Labels: labels}
	onNode := cloud.Selector{Namespace: "test-hotel-reservation", Labels: labels, Node: "n2"}
	for _, tt := range []struct {
		kind, params string
		want         cloud.Disturbance
	}{
		{"container_kill", "", cloud.Disturbance{Selector: everywhere, Pod: &cloud.PodChaos{Action: cloud.ContainerKill}}},
		{"container_kill", "{containers: [hotel-reserv-user]}", cloud.Disturbance{Selector: everywhere, Pod: &cloud.PodChaos{Action: cloud.ContainerKill, Containers: []string{"hotel-reserv-user"}}}},
		{"pod_kill", "{node: true}", cloud.Disturbance{Selector: onNode, Pod: &cloud.PodChaos{Action: cloud.PodKill}}},
		{"pod_failure", "{every: 1m, for: 20s}", cloud.Disturbance{Selector: everywhere, Schedule: cloud.Schedule{Every: time.Minute, For: 20 * time.Second}, Pod: &cloud.PodChaos{Action: cloud.PodFailure}}},
		{"network_loss", "{loss: 0.5, node: true}", cloud.Disturbance{Selector: onNode, Network: &cloud.NetworkChaos{Loss: 0.5, Direction: cloud.To}}},
		{"network_delay", "{delay: 2s, direction: both}", cloud.Disturbance{Selector: everywhere, Network: &cloud.NetworkChaos{Delay: 2 * time.Second, Direction: cloud.Both}}},
		{"network_jitter", "", cloud.Disturbance{Selector: everywhere, Network: &cloud.NetworkChaos{Delay: 2 * time.Second, Jitter: 2 * time.Second, Direction: cloud.To}}},
		{"network_bandwidth", "{rate: 10}", cloud.Disturbance{Selector: everywhere, Network: &cloud.NetworkChaos{Bandwidth: 10, Direction: cloud.To}}},
		{"network_corrupt", "", cloud.Disturbance{Selector: everywhere, Network: &cloud.NetworkChaos{Corrupt: 0.95, Direction: cloud.To}}},
		{"network_partition", "", cloud.Disturbance{Selector: everywhere, Network: &cloud.NetworkChaos{Partition: true, Direction: cloud.Both}}},
		{"cpu_stress", "{cores: 2}", cloud.Disturbance{Selector: everywhere, Stress: &cloud.StressChaos{CPU: 2}}},
		{"memory_stress", "{memory: 512Mi, ramp: 30s}", cloud.Disturbance{Selector: everywhere, Schedule: cloud.Schedule{Ramp: 30 * time.Second}, Stress: &cloud.StressChaos{Memory: 512 << 20}}},
		{"kernel_fault", "", cloud.Disturbance{Selector: everywhere, Kernel: &cloud.KernelChaos{Call: "connect", Errno: "ENOMEM", Percent: 100}}},
	} {
		t.Run(tt.kind+tt.params, func(t *testing.T) {
			l, c := newLab(t, hotel.App(), map[string]string{"user": "n2"}), &chaos{}
			f := bind(t, tt.kind, hotel.App(), "user", tt.params)
			if err := f.Inject(t.Context(), l.env); err == nil || !strings.Contains(err.Error(), "this cluster has no means to disturb pods") {
				t.Errorf("without the power: %v", err)
			}
			l.env.Chaos = c
			for range 2 { // The second time there is nothing left to do.
				if err := f.Inject(t.Context(), l.env); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff([]cloud.Disturbance{tt.want}, c.asked); d != "" {
				t.Error(d)
			}
			for range 2 {
				if err := f.Recover(t.Context(), l.env); err != nil {
					t.Fatal(err)
				}
			}
			if c.stopped != 1 {
				t.Errorf("stopped %d times", c.stopped)
			}
		})
	}
	disk := bind(t, "disk_woreout", hotel.App(), "mongodb-user", "")
	want := &cloud.IOChaos{Path: "/data/db", Methods: []string{"write", "fsync"}, Errno: "EIO", Percent: 100}
	if d := cmp.Diff(want, disk.(*disturbed).what.IO); d != "" {
		t.Error(d)
	}
	// The disk goes by its claim and its volume.
	l := newLab(t, hotel.App(), map[string]string{"mongodb-user": "n1"})
	l.env.Chaos = &chaos{}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: hotel.App().Namespace, Name: "user-pvc"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pvc-0815"}}
	if err := l.Tracker().Add(claim); err != nil {
		t.Fatal(err)
	}
	if err := disk.Inject(t.Context(), l.env); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(NamesOf(disk)); got != "map[mongodb-user:[user-pvc pvc-0815]]" {
		t.Errorf("it goes by %s", got)
	}
}

// Only what is bound to a node has a solution.
func TestSolutionOfDisturbances(t *testing.T) {
	for _, k := range Kinds() {
		if !strings.HasPrefix(k.Name, "network_") && !strings.HasPrefix(k.Name, "pod_") {
			continue
		}
		target := Target{App: hotel.App(), Service: "consul"}
		if c, err := k.Fix(target, nil); err != nil || c != nil {
			t.Errorf("%s: %v, %v", k.Name, c, err)
		}
		if c, err := k.Fix(target, node(t, "{node: true}")); err != nil || len(c) == 0 || !strings.HasPrefix(c[0], "kubectl cordon ") {
			t.Errorf("%s: %v, %v", k.Name, c, err)
		}
	}
}

// What comes and goes shows all the time, until it has been away for too long.
func TestPeriodic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		symptom := "slow"
		f := &disturbed{what: cloud.Disturbance{Schedule: cloud.Schedule{Every: time.Minute, For: time.Second}}, probe: func(context.Context, *Env, string) (string, error) {
			return symptom, nil
		}}
		look := func() string {
			s, err := f.Manifest(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := look(); s != "slow" {
			t.Error(s)
		}
		symptom = ""
		time.Sleep(time.Minute)
		if s := look(); s != "slow (1m0s ago; it comes and goes)" {
			t.Error(s)
		}
		time.Sleep(seenMargin)
		if s := look(); s != "" {
			t.Error(s)
		}
	})
}

func TestVolumesByName(t *testing.T) {
	a := hotel.App()
	f := bind(t, "redeploy_without_pv", a, "", "").(*unbound)
	f.volumes = map[string]*v1.PersistentVolume{"geo-pvc": {ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}, Spec: v1.PersistentVolumeSpec{StorageClassName: "standard"}}}
	objects := f.objects()
	if len(objects) != len(f.parts) {
		t.Errorf("%d of %d objects", len(objects), len(f.parts))
	}
	claim := typed[v1.PersistentVolumeClaim](objects, "PersistentVolumeClaim", "geo-pvc")
	if claim.Spec.VolumeName != "pv-1" || *claim.Spec.StorageClassName != "standard" {
		t.Errorf("%+v", claim.Spec)
	}
	if other := typed[v1.PersistentVolumeClaim](objects, "PersistentVolumeClaim", "rate-pvc"); other.Spec.VolumeName != "" {
		t.Errorf("%+v", other.Spec)
	}
	if got := NamesOf(f); len(got) != 1 || fmt.Sprint(got["mongodb-geo"]) != "[pv-1]" {
		t.Errorf("drawn names %v", got)
	}
	if got := fmt.Sprint(f.servers, f.clients); got != "[mongodb-geo mongodb-rate mongodb-profile mongodb-recommendation mongodb-user mongodb-reservation] [geo rate profile recommendation user reservation]" {
		t.Error(got)
	}
}

// TestExample tries the worked example of docs/faults.md.
func TestExample(t *testing.T) {
	k, a := missingImage(), hotel.App()
	f, err := k.New(Target{App: a, Service: "mongodb-geo"}, node(t, "{tag: v9}"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, a, nil)
	if err := f.Inject(t.Context(), l.env); err != nil {
		t.Fatal(err)
	}
	if got := field(l.patches[0].body, "spec", "template", "spec", "containers", 0, "image"); got != "mongo:v9" {
		t.Errorf("%v", got)
	}
	if c, err := k.Fix(Target{App: a, Service: "mongodb-geo"}, nil); err != nil || c[0] != "kubectl set image deployment/mongodb-geo '*=mongo:4.4.6'" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := k.New(Target{App: a, Service: "geo"}, node(t, `{tag: ""}`)); err == nil || err.Error() != `missing_image:1: parameter "tag" must not be empty` {
		t.Error(err)
	}
}
