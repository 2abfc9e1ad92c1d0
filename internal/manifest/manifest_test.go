package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

const shop = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart}
spec:
  replicas: 2
---
# A comment alone is no object.
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: elsewhere}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
`

// names are objects as kind/name.
func names(objects []*unstructured.Unstructured) (list []string) {
	for _, u := range objects {
		list = append(list, u.GetKind()+"/"+u.GetName())
	}
	return list
}

func TestRead(t *testing.T) {
	objects, err := manifest.Read(fstest.MapFS{
		"b.yaml":      {Data: []byte(shop)},
		"a.yaml":      {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n")},
		"notes.txt":   {Data: []byte("no: manifest")},
		"sub/c.yaml":  {Data: []byte("kind: Other")},
		"empty.yaml":  {},
		"hidden.yml2": {Data: []byte("kind: Other")},
	})
	want := []string{"Namespace/first", "Deployment/cart", "Service/cart", "ClusterRole/reader", "ConfigMap/settings"}
	if err != nil || !slices.Equal(names(objects), want) {
		t.Errorf("%v, %v", names(objects), err)
	}
}

// Whoever wrote a wrong document learns in which file it is.
func TestReadWrong(t *testing.T) {
	for text, want := range map[string]string{
		"kind: [":                     "b.yaml: ",
		"kind: A\n---\n- a\n- list":   "b.yaml: ",
		"apiVersion: v1\nmetadata: x": "b.yaml: ",
	} {
		files := fstest.MapFS{"a.yaml": {Data: []byte("kind: Fine")}, "b.yaml": {Data: []byte(text)}}
		if objects, err := manifest.Read(files); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, names(objects), err)
		}
	}
}

// client is a client of a cloud in memory that notes the writes it gets.
func client(t *testing.T) (*manifest.Client, *cloudtest.Cloud, func() []string) {
	t.Helper()
	c := cloudtest.New(t)
	var mu sync.Mutex
	var writes []string
	c.Before(func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet {
			writes = append(writes, r.URL.Path+"?"+r.URL.RawQuery)
		}
		return nil
	})
	m, err := manifest.NewClient(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return m, c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(writes)
	}
}

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// What others need comes first; each object goes where it belongs, by the means of kubectl.
func TestApply(t *testing.T) {
	m, _, writes := client(t)
	objects := parse(t, shop)
	if err := m.Apply(t.Context(), "shop", objects); err != nil {
		t.Fatal(err)
	}
	got := writes()
	if len(got) != 5 {
		t.Fatalf("%d writes: %v", len(got), got)
	}
	slices.Sort(got[1:4]) // They are applied at the same time.
	const how = "?fieldManager=kubectl&force=true"
	want := []string{
		"/api/v1/namespaces/shop" + how,
		"/api/v1/namespaces/elsewhere/services/cart" + how,
		"/api/v1/namespaces/shop/configmaps/settings" + how,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/reader" + how,
		"/apis/apps/v1/namespaces/shop/deployments/cart" + how,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, u := range objects {
		if u.GetName() == "cart" && u.GetKind() == "Deployment" && u.GetNamespace() != "" {
			t.Error("the caller's object was changed")
		}
	}
	if err := m.Apply(t.Context(), "shop", objects); err != nil {
		t.Errorf("it cannot be applied again: %v", err)
	}
}

// What is in no namespace is labelled, besides its own labels, so that who owns the cluster can tell whose it is.
func TestApplyWithLabels(t *testing.T) {
	m, c, _ := client(t)
	m.Labels = map[string]string{"run": "r1"}
	objects := parse(t, shop)
	if err := m.Apply(t.Context(), "shop", objects); err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	role, err := k.RbacV1().ClusterRoles().Get(t.Context(), "reader", metav1.GetOptions{})
	if err != nil || role.Labels["run"] != "r1" {
		t.Errorf("the role has the labels %v: %v", role.Labels, err)
	}
	settings, err := k.CoreV1().ConfigMaps("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || settings.Labels["run"] != "" {
		t.Errorf("what is in a namespace has the labels %v: %v", settings.Labels, err)
	}
	for _, u := range objects {
		if u.GetLabels()["run"] != "" {
			t.Error("the caller's object was changed")
		}
	}
}

// A namespace that is among the objects is applied as it is there, and once: a second time without its labels would
// take them away.
func TestApplyNamespaceAmongObjects(t *testing.T) {
	m, _, writes := client(t)
	objects := parse(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {a: b}}")
	if err := m.Apply(t.Context(), "shop", objects); err != nil {
		t.Fatal(err)
	}
	if got := writes(); len(got) != 1 {
		t.Errorf("%d writes: %v", len(got), got)
	}
}

// What cannot be applied is named, and what comes after it is not begun.
func TestApplyFails(t *testing.T) {
	m, c, writes := client(t)
	err := m.Apply(t.Context(), "shop", parse(t, "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}"))
	if err == nil || !strings.Contains(err.Error(), "apply Gadget g: ") {
		t.Errorf("a kind that the cluster does not have: %v", err)
	}
	refused := errors.New("the quota is used up")
	c.Before(func(r *http.Request) error {
		if path.Base(path.Dir(r.URL.Path)) == "configmaps" {
			return refused
		}
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "deployments") {
			t.Error("what needs the ConfigMap was applied without it")
		}
		return nil
	})
	before := len(writes())
	err = m.Apply(t.Context(), "shop", parse(t, shop))
	if err == nil || !strings.Contains(err.Error(), "apply ConfigMap settings: ") || !strings.Contains(err.Error(), refused.Error()) {
		t.Errorf("a refused object: %v", err)
	}
	if n := len(writes()); n != before {
		t.Errorf("%d writes went on", n-before)
	}
}

// Workloads are waited for, other objects are not.
func TestWaitReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := client(t)
		objects := parse(t, shop)
		c.Stick("shop", "cart", true)
		if err := m.Apply(t.Context(), "shop", objects); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { c.Stick("shop", "cart", false) })
		began := time.Now()
		if err := m.WaitReady(t.Context(), "shop", objects); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := m.WaitReady(t.Context(), "shop", objects); err != nil || time.Since(began) != time.Minute {
			t.Errorf("what is ready was waited for: %v after %v", err, time.Since(began))
		}
		c.Close()
	})
}

// Who waits in vain learns what for.
func TestWaitReadyInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := client(t)
		defer c.Close()
		objects := parse(t, shop+"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
		c.Stick("shop", "web", true)
		if err := m.Apply(t.Context(), "shop", objects); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("an hour is over"))
		defer cancel()
		err := m.WaitReady(ctx, "shop", objects)
		if err == nil || err.Error() != "Deployment web: not ready: an hour is over" {
			t.Errorf("%v", err)
		}
		missing := parse(t, "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}")
		if err := m.WaitReady(t.Context(), "shop", missing); err == nil || !strings.HasPrefix(err.Error(), "StatefulSet db: ") {
			t.Errorf("what is not there: %v", err)
		}
	})
}

// Who waits for many is told how many, and what the first waits for.
func TestWaitReadyTells(t *testing.T) {
	const workloads = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec: {selector: {matchLabels: {app: db}}}
---
apiVersion: v1
kind: Pod
metadata: {name: db-1, labels: {app: db}}
status: {conditions: [{type: PodScheduled, status: "False", message: not about this}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
`
	for status, want := range map[string]string{
		"{}": "Deployment web and 1 more: not ready: an hour is over",
		`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: Insufficient cpu.}]}`:                              "Deployment web and 1 more: not ready: no node takes web-1: Insufficient cpu.: an hour is over",
		"{containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff, message: no such tag}}}]}":                                  "Deployment web and 1 more: not ready: web-1: ImagePullBackOff: no such tag: an hour is over",
		"{containerStatuses: [{name: a, lastState: {terminated: {reason: Error, exitCode: 2}}, state: {waiting: {reason: CrashLoopBackOff}}}]}": "Deployment web and 1 more: not ready: web-1: CrashLoopBackOff, exit status 2: an hour is over",
	} {
		synctest.Test(t, func(t *testing.T) {
			m, c, _ := client(t)
			defer c.Close()
			objects := parse(t, workloads+"status: "+status+"\n")
			c.Stick("shop", "web", true)
			c.Stick("shop", "db", true)
			if err := m.Apply(t.Context(), "shop", objects); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("an hour is over"))
			defer cancel()
			if err := m.WaitReady(ctx, "shop", objects); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// A workload is ready when all of its pods are, and are of its current generation.
func TestReady(t *testing.T) {
	const current = "status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2}"
	const everywhere = "status: {observedGeneration: 3, desiredNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 2}"
	for _, c := range []struct {
		name, kind, replicas, status string
		want                         bool
	}{
		{"all are there", "Deployment", "{replicas: 2}", current, true},
		{"all are there", "StatefulSet", "{replicas: 2}", current, true},
		{"one is wanted by default", "Deployment", "{}", strings.ReplaceAll(current, ": 2", ": 1"), true},
		{"none is wanted", "Deployment", "{replicas: 0}", "status: {observedGeneration: 3}", true},
		{"nothing is known yet", "Deployment", "{replicas: 2}", "", false},
		{"the status is of the generation before", "Deployment", "{replicas: 2}", strings.Replace(current, "3", "2", 1), false},
		{"one is not ready", "Deployment", "{replicas: 2}", strings.Replace(current, "readyReplicas: 2", "readyReplicas: 1", 1), false},
		{"one is old", "Deployment", "{replicas: 2}", strings.Replace(current, "updatedReplicas: 2", "updatedReplicas: 1", 1), false},
		{"an old one is left", "Deployment", "{replicas: 2}", strings.Replace(current, " replicas: 2", " replicas: 3", 1), false},
		{"on every node", "DaemonSet", "{}", everywhere, true},
		{"not on every node", "DaemonSet", "{}", strings.Replace(everywhere, "numberReady: 2", "numberReady: 1", 1), false},
		{"old on one node", "DaemonSet", "{}", strings.Replace(everywhere, "updatedNumberScheduled: 2", "updatedNumberScheduled: 1", 1), false},
	} {
		t.Run(c.kind+" "+c.name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: x, generation: 3}\nspec: %s\n%s", c.kind, c.replicas, c.status)
			if got := manifest.Ready(parse(t, text)[0]); got != c.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tidbclusters.pingcap.com}
spec: {group: pingcap.com, names: {kind: TidbCluster}}
---
apiVersion: pingcap.com/v1alpha1
kind: TidbCluster
metadata: {name: basic}
spec: {version: v8.1.0, pd: {baseImage: pingcap/pd}, tidb: {baseImage: pingcap/tidb, version: v8.5.0}}
---
apiVersion: example.com/v1
kind: TidbCluster
metadata: {name: another}
`

// Objects are of the kinds that others define only if the group is the same.
func TestDefined(t *testing.T) {
	if got := names(manifest.Defined(parse(t, definition))); !slices.Equal(got, []string{"TidbCluster/basic"}) {
		t.Error(got)
	}
}

// The resources of an application's own kinds are those that its definitions define, if they are in namespaces.
func TestResources(t *testing.T) {
	const more = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Pool, plural: pools}}
`
	text := strings.Replace(definition, "{kind: TidbCluster}", "{kind: TidbCluster, plural: tidbclusters}", 1) + "---" + more
	want := []schema.GroupResource{{Group: "pingcap.com", Resource: "tidbclusters"}}
	if got := manifest.Resources(parse(t, text)); !slices.Equal(got, want) {
		t.Error(got)
	}
}

// What is in no namespace is there once, whoever made it: a client with labels makes it, changes what has its labels,
// and leaves alone what has others.
func TestApplyOwn(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n"
	m, _, _ := client(t)
	m.Labels = map[string]string{"run": "r1"}
	for range 2 {
		if err := m.ApplyOne(t.Context(), "", parse(t, role)[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, labels := range []string{"{}", "{run: r2}", "{ran: r1}"} {
		m, c, writes := client(t)
		theirs := parse(t, strings.Replace(role, "reader", "reader, labels: "+labels, 1)+
			"rules: [{nonResourceURLs: [/theirs], verbs: [get]}]")[0]
		owner, err := manifest.NewClient(c.RESTConfig())
		if err == nil {
			err = owner.ApplyOne(t.Context(), "", theirs)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := writes()
		m.Labels = map[string]string{"run": "r1"}
		err = m.Apply(t.Context(), "", parse(t, role))
		if !errors.Is(err, manifest.ErrNotOwn) || !strings.HasPrefix(err.Error(), "apply ClusterRole reader: it is there already") {
			t.Errorf("%q: %v", labels, err)
		}
		now, err := m.Get(t.Context(), "", theirs)
		if _, is, _ := unstructured.NestedSlice(now.Object, "rules"); err != nil || !is || len(writes()) > len(before)+1 {
			t.Errorf("%q: it was changed: %v, %v, %v", labels, now, err, writes())
		}
	}
}

// Of many who make the same at once, one has it.
func TestApplyOwnAtOnce(t *testing.T) {
	_, c, _ := client(t)
	var wg sync.WaitGroup
	var had atomic.Int64
	for i := range 8 {
		m, err := manifest.NewClient(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		m.Labels = map[string]string{"run": fmt.Sprint("r", i)}
		role := parse(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}")[0]
		wg.Go(func() {
			switch err := m.ApplyOne(t.Context(), "", role); {
			case err == nil:
				had.Add(1)
			case !errors.Is(err, manifest.ErrNotOwn):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := had.Load(); n != 1 {
		t.Errorf("%d have it", n)
	}
}

// The images that an operator takes from a custom resource are among the images.
func TestBaseImages(t *testing.T) {
	objects := parse(t, definition)
	if err := manifest.Under("registry.example/lab", objects); err != nil {
		t.Fatal(err)
	}
	var got []string
	manifest.EachImage(objects, func(image string, _ func(string)) { got = append(got, image) })
	want := []string{"registry.example/lab/pingcap/pd:v8.1.0", "registry.example/lab/pingcap/tidb:v8.5.0"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A custom resource is ready when it says so.
func TestReadyCondition(t *testing.T) {
	for status, want := range map[string]bool{
		`{}`: false, `{conditions: [{type: Ready, status: "False"}]}`: false,
		`{conditions: [{type: Other, status: "True"}, {type: Ready, status: "True"}]}`: true,
	} {
		u := parse(t, "apiVersion: pingcap.com/v1alpha1\nkind: TidbCluster\nmetadata: {name: basic}\nstatus: "+status)[0]
		if got := manifest.Ready(u); got != want {
			t.Errorf("%s: %v", status, got)
		}
	}
}
