package noise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

const serviceManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  %[2]s
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: %[1]s, image: "example/%[1]s:v1"}]
      %[3]s
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}
---
`

// shop is an application of some services that keep nothing, a cache, and a database with a volume.
func shop() *app.App {
	text := ""
	services := []app.Service{{Name: "db", Kind: "mongodb"}, {Name: "cache", Kind: "memcached"}}
	for _, name := range []string{"frontend", "cart", "stock", "price", "mail"} {
		s := app.Service{Name: name, Kind: "service"}
		if name == "stock" {
			s.Calls = []string{"db"}
		}
		services = append(services, s)
		text += fmt.Sprintf(serviceManifest, name, "", "")
	}
	text += fmt.Sprintf(serviceManifest, "cache", "", "") + fmt.Sprintf(serviceManifest, "db", "strategy: {type: Recreate}",
		"volumes: [{name: data, persistentVolumeClaim: {claimName: db}}, {name: conf, configMap: {name: settings}}]")
	text += `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: db}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	return &app.App{
		Name: "shop", Namespace: "test-shop", Label: "app", Services: services,
		Manifests: fstest.MapFS{"shop.yaml": {Data: []byte(text)}},
	}
}

// trial is a shop that is deployed, with what is written to it.
type trial struct {
	*cloudtest.Cloud
	client kubernetes.Interface
	life   *Life

	mu     sync.Mutex
	writes []string
}

func newTrial(t *testing.T, l Level, seed uint64) *trial {
	t.Helper()
	x := &trial{Cloud: cloudtest.New(t)}
	a := shop()
	var err error
	if x.client, err = kubernetes.NewForConfig(x.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	c, err := manifest.NewClient(x.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "PersistentVolumeClaim" })
	if err := c.Apply(t.Context(), a.Namespace, objects); err != nil {
		t.Fatal(err)
	}
	x.Before(func(r *http.Request) error {
		if r.Method != http.MethodGet {
			x.mu.Lock()
			defer x.mu.Unlock()
			_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/test-shop/")
			x.writes = append(x.writes, rest)
		}
		return nil
	})
	x.life = &Life{Env: &fault.Env{Client: x.client, Config: x.RESTConfig(), Dial: x.Dial, App: a}, Level: l, Seed: seed}
	return x
}

func (x *trial) written() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.writes)
}

func (x *trial) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d, err := x.client.AppsV1().Deployments("test-shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// scale is what another does to a Deployment.
func (x *trial) scale(t *testing.T, name string, n int32) {
	t.Helper()
	d := x.deployment(t, name)
	d.Spec.Replicas = ptr.To(n)
	if _, err := x.client.AppsV1().Deployments("test-shop").Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Everything is applied again with the mark of a release, once; the pods of what keeps something stay, and
// what cannot be applied again is left alone.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Calm, 3)
		begun, want := time.Now(), []string{"configmaps/settings"}
		if err := x.life.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		span, err := Span(shop(), Calm)
		if took := time.Since(begun); err != nil || took > span {
			t.Errorf("it took %v, want %v at most, %v", took, span, err)
		}
		for _, name := range []string{"frontend", "cart", "stock", "price", "mail", "cache", "db"} {
			want = append(want, "deployments/"+name, "services/"+name)
			d := x.deployment(t, name)
			if d.Annotations[buildAnnotation] == "" {
				t.Errorf("%s has no mark of the release", name)
			}
			if rolled := d.Spec.Template.Annotations[buildAnnotation] != ""; rolled != (name != "db") {
				t.Errorf("new pods of %s: %v", name, rolled)
			}
		}
		got := x.written()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("written were %v, want %v", got, want)
		}
		if c := x.life.Changes(); len(c) != 7 || len(x.life.Changes()) > 0 {
			t.Errorf("told were %v", c)
		}
	})
}

// Without noise nothing is written, but faults come, one after the other.
func TestNone(t *testing.T) {
	for _, l := range []Level{"", None} {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, l, 1)
			var came []string
			come := func(name string) Injection {
				return Injection{Do: func(context.Context) error { came = append(came, name); return nil }}
			}
			err := x.life.Release(t.Context(), []Injection{come("a"), come("b")})
			if err == nil {
				err = x.life.Go(t.Context())
			}
			time.Sleep(time.Minute)
			x.life.Stop(t.Context())
			if err != nil || !slices.Equal(came, []string{"a", "b"}) || len(x.written()) > 0 || x.life.Env.Dress != nil {
				t.Errorf("%v, %v came, written were %v", err, came, x.written())
			}
			if span, err := Span(shop(), l); span != 0 || err != nil {
				t.Errorf("it takes %v, %v", span, err)
			}
		})
	}
}

// A fault that changes a Deployment does so at the Deployment's place in the order, and with the mark of the
// release: there is no other write to it.
func TestFaultInTheMiddle(t *testing.T) {
	places := map[int]bool{}
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Calm, seed)
			kind, err := fault.Find(fault.Kinds(), "scale_pods_to_zero")
			if err != nil {
				t.Fatal(err)
			}
			f, err := kind.New(fault.Target{App: x.life.Env.App, Service: "cart"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = x.life.Release(t.Context(), []Injection{{Reach: fault.ReachOf(f), Do: func(ctx context.Context) error {
				return f.Inject(ctx, x.life.Env)
			}}})
			d := x.deployment(t, "cart")
			if err != nil || *d.Spec.Replicas != 0 || d.Spec.Template.Annotations[buildAnnotation] == "" {
				t.Errorf("%v; %d replicas, %v", err, *d.Spec.Replicas, d.Spec.Template.Annotations)
			}
			var order []string
			for _, w := range x.written() {
				if name, ok := strings.CutPrefix(w, "deployments/"); ok {
					order = append(order, name)
				}
			}
			if len(order) != 7 {
				t.Errorf("Deployments were written in the order %v", order)
			}
			places[slices.Index(order, "cart")] = true
			quiet := newTrial(t, Calm, seed)
			if err := quiet.life.Release(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			var healthy []string
			for _, w := range quiet.written() {
				if name, ok := strings.CutPrefix(w, "deployments/"); ok {
					healthy = append(healthy, name)
				}
			}
			if !slices.Equal(order, healthy) {
				t.Errorf("with a fault the order is %v, without %v", order, healthy)
			}
		})
	}
	if len(places) < 4 {
		t.Errorf("it came at the places %v only", places)
	}
}

// A fault comes after the release of what it touches and of what needs it to start; one that does not say
// what that is comes last.
func TestPlan(t *testing.T) {
	a := shop()
	parts, err := partsOf(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		reach fault.Reach
		after []string
	}{
		{"touches", fault.Reach{Known: true, Touches: []string{"cart", "mail"}}, []string{"cart", "mail"}},
		{"a store", fault.Reach{Known: true, Touches: []string{"db"}}, []string{"db", "stock"}},
		{"changes a store", fault.Reach{Known: true, Applies: []string{"Deployment/db"}}, []string{"stock"}},
		{"configures a store", fault.Reach{Known: true, Applies: []string{"ConfigMap/settings"}, Touches: []string{"mail"}}, []string{"mail"}},
		{"unknown", fault.Reach{}, []string{"frontend", "cart", "stock", "price", "mail", "cache", "db"}},
		{"nothing", fault.Reach{Known: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			last := 0
			for seed := range uint64(200) {
				i := Injection{Reach: c.reach}
				steps := plan(rand.New(rand.NewPCG(seed, 1)), a, parts, []Injection{i})
				at := slices.IndexFunc(steps, func(s step) bool { return s.injection != nil })
				seen := map[string]int{}
				for k, s := range steps {
					if s.part != nil {
						seen[s.part.service]++
						if slices.Contains(c.after, s.part.service) && k > at {
							t.Fatalf("with seed %d the fault comes before %s", seed, s.part.service)
						}
					}
				}
				if len(seen) != len(parts) || len(steps) > len(parts)+1 {
					t.Fatalf("with seed %d there are %d steps for %v", seed, len(steps), seen)
				}
				if at == len(steps)-1 {
					last++
				}
			}
			if unknown := !c.reach.Known; unknown != (last == 200) || last == 0 {
				t.Errorf("it was the last step in %d of 200", last)
			}
		})
	}
}

// A fault that deploys the application anew does so with the mark of a release. After it some of what it does not break
// is released with another mark, and nothing of what it breaks.
func TestReleaseAfterWhole(t *testing.T) {
	released := map[string]bool{}
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Calm, seed)
			var builds []string
			err := x.life.Release(t.Context(), []Injection{{
				Reach: fault.Reach{Known: true, Whole: true, Touches: []string{"db", "cart"}}, Do: func(context.Context) error {
					u := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment"}}
					x.life.Env.Dress(u)
					builds = append(builds, u.GetAnnotations()[buildAnnotation])
					if len(x.written()) > 0 {
						t.Errorf("written before it was %v", x.written())
					}
					return nil
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			list := x.life.Changes()
			for _, c := range list {
				if slices.Contains([]string{"db", "cart", "stock"}, c.Service) {
					t.Errorf("%s is released, which is broken", c.Service)
				}
				released[c.Service] = true
				builds = append(builds, x.deployment(t, c.Service).Annotations[buildAnnotation])
			}
			if slices.Sort(builds); len(list) != 2 || builds[0] == "" || len(slices.Compact(builds)) != 2 {
				t.Errorf("released were %v, with the marks %v", list, builds)
			}
		})
	}
	if len(released) != 4 {
		t.Errorf("released were only %v", released)
	}
}

// If a fault that deploys the application anew fails, nothing else is done.
func TestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Calm, 1)
		fails := errors.New("it cannot be")
		if err := x.life.Release(t.Context(), []Injection{{
			Reach: fault.Reach{Known: true, Whole: true}, Do: func(context.Context) error { return fails },
		}}); !errors.Is(err, fails) || len(x.written()) > 0 {
			t.Errorf("%v, written were %v", err, x.written())
		}
	})
}

// While an agent works, services are scaled up and down; those to whose pods a fault is tied, and those that cannot
// have two pods, are not. When it ends, everything is as it was.
func TestStir(t *testing.T) {
	for _, level := range []Level{Calm, Busy} {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, level, 5)
			x.life.Release(t.Context(), []Injection{{ //nolint:errcheck // It does nothing.
				Reach: fault.Reach{Known: true, Touches: []string{"frontend"}, Alone: []string{"frontend"}},
				Do:    func(context.Context) error { return nil },
			}})
			x.life.Changes()
			if err := x.life.Go(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			x.life.HandOver()
			before := len(x.life.Changes())
			time.Sleep(10 * time.Minute)
			late := x.life.Changes()
			x.life.Stop(t.Context())
			x.life.Stop(t.Context())
			counts := map[string]int{}
			for _, c := range append(late, x.life.Changes()...) {
				counts[c.Service]++
			}
			if len(counts) < 2 || counts["frontend"]+counts["db"] > 0 {
				t.Errorf("changed were %v", counts)
			}
			least, most := 60, 150
			if level == Busy {
				least, most = 290, 400
			}
			if before < 4 || len(late) < least || len(late) > most {
				t.Errorf("%s: %d changes in 2 s, %d in 10 min", level, before, len(late))
			}
			for _, name := range []string{"frontend", "cart", "stock", "price", "mail", "cache", "db"} {
				if n := *x.deployment(t, name).Spec.Replicas; n != 1 {
					t.Errorf("%s has %d replicas in the end", name, n)
				}
			}
		})
	}
}

// What somebody else has written is theirs: it is never written again, nor set back in the end.
func TestAgentsWritesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Busy, 2)
		if err := x.life.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := x.life.Go(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.life.HandOver()
		names := []string{"frontend", "cart", "stock", "price", "mail"}
		for i := range names { // Some of them have a pod more at the moment, and some have not.
			time.Sleep(time.Duration(i+1) * 700 * time.Millisecond)
			x.scale(t, names[i], 5)
		}
		if err := x.client.AppsV1().Deployments("test-shop").Delete(t.Context(), "mail", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		n := len(x.written())
		time.Sleep(5 * time.Minute)
		x.life.Stop(t.Context())
		for _, w := range x.written()[n:] {
			if strings.HasPrefix(w, "deployments/") {
				t.Errorf("%s was written", w)
			}
		}
		for _, name := range names[:4] {
			if n := *x.deployment(t, name).Spec.Replicas; n != 5 {
				t.Errorf("%s has %d replicas, not the 5 that were asked for", name, n)
			}
		}
	})
}

// One seed makes the same changes, another makes others.
func TestSeed(t *testing.T) {
	made := func(seed uint64) (list []string) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Calm, seed)
			begun := time.Now()
			if err := x.life.Release(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := x.life.Go(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			x.life.Stop(t.Context())
			for _, c := range x.life.Changes() {
				list = append(list, fmt.Sprint(c.Time.Sub(begun).Round(time.Millisecond), c.What, c.Service))
			}
		})
		return list
	}
	if a, b := made(1), made(1); !slices.Equal(a, b) {
		t.Errorf("with one seed:\n%v\n%v", a, b)
	}
	if a, b := made(1), made(2); slices.Equal(a, b) {
		t.Errorf("with two seeds: %v", a)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Level{"": Calm, "none": None, "calm": Calm, "busy": Busy} {
		if l, err := Parse(text); l != want || err != nil {
			t.Errorf("%q is %q, %v", text, l, err)
		}
	}
	for text, want := range map[string]string{"clam": `did you mean "calm"?`, "loud noise": "there are none, calm, busy"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The release does not wait for a fault that takes its time: a pause would tell where it came. A fault that
// changes a Service does so in place of the Service's own release.
func TestNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Calm, 4)
		slow := func(ctx context.Context) error { return until(ctx, time.Now().Add(10*time.Second)) }
		if err := x.life.Release(t.Context(), []Injection{
			{Reach: fault.Reach{Known: true, Applies: []string{"Service/cart"}}, Do: slow},
			{Reach: fault.Reach{Known: true, Touches: []string{"price"}, Settled: true}, Do: slow},
		}); err != nil {
			t.Fatal(err)
		}
		list := x.life.Changes()
		for i := range list[1:] {
			if d := list[i+1].Time.Sub(list[i].Time); d > 2*pace {
				t.Errorf("%v from %s to %s", d, list[i].Service, list[i+1].Service)
			}
		}
		if w := x.written(); slices.Contains(w, "services/cart") || !slices.Contains(w, "deployments/cart") {
			t.Errorf("written were %v", w)
		}
	})
}

// What fails ends the release, and nothing is left behind.
func TestReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Calm, 4)
		fails := errors.New("it cannot be")
		err := x.life.Release(t.Context(), []Injection{
			{Reach: fault.Reach{Known: true}, Do: func(context.Context) error { return fails }},
		})
		if !errors.Is(err, fails) {
			t.Errorf("got %v", err)
		}
		x.Before(func(r *http.Request) error {
			if r.Method != http.MethodGet {
				return fails
			}
			return nil
		})
		hang := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		err = x.life.Release(t.Context(), []Injection{{Reach: fault.Reach{Known: true}, Do: hang}})
		if err == nil || !strings.Contains(err.Error(), fails.Error()) {
			t.Errorf("got %v", err)
		}
	})
}

// A release is an edit of ConfigMaps as well, where a comment does no harm.
func TestRemark(t *testing.T) {
	for name, want := range map[string]string{
		"users.js": "a\n// build 1\n", "mongod.conf": "a\n# build 1\n", "init.sh": "a\n# build 1\n",
		"nginx.lua": "a\n-- build 1\n", "config.json": "a\n", "plain": "a\n",
	} {
		if got := remark(name, "a\n", "build 1"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := remark("a.sh", "", "x"); got != "\n# x\n" {
		t.Errorf("an empty file: %q", got)
	}
}
