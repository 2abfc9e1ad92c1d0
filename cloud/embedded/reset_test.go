package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded"
)

// shop is an application with everything that has to come back: pods behind a service, data on
// volumes and in containers, custom resources and rights.
const shop = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: auditor, namespace: shop}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: auditor}
rules: [{apiGroups: [lab.example.com], resources: [backups], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: auditor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: auditor}
subjects: [{kind: ServiceAccount, name: auditor, namespace: shop}]
`

// newShop starts a cluster with the shop in it and returns it with its snapshot.
func newShop(t *testing.T) (*cluster, *embedded.Snapshot) {
	t.Helper()
	c := fresh(t, embedded.Options{})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.apply(t, "", shop)
	c.apply(t, "", backupCRD)
	c.apply(t, "shop", fmt.Sprintf(front, "one", 1))
	c.apply(t, "shop", fmt.Sprintf(store, 2))
	c.mapper.Reset()
	awaitTrue(t, "backups are served", func() bool {
		_, err := c.dynamic.Resource(backups).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	c.apply(t, "shop", "{apiVersion: lab.example.com/v1, kind: Backup, metadata: {name: nightly}, spec: {source: db}}")
	c.readyPods(t, "shop", "app=front", 3)
	for _, p := range c.readyPods(t, "shop", "app=store", 2) {
		c.exec(t, "shop", p.Name, "sh", "-c", "echo data of $HOSTNAME > /usr/share/nginx/html/index.html; echo layer > /tmp/layer")
	}
	return c, c.settledSnapshot(t)
}

// settledSnapshot takes a snapshot once nothing changes any more.
func (c *cluster) settledSnapshot(t *testing.T) *embedded.Snapshot {
	t.Helper()
	return await(t, func() (*embedded.Snapshot, error) {
		s, err := c.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		snap := s.(*embedded.Snapshot)
		for range 20 {
			if _, err := c.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if d := c.diff(t, snap); len(d) > 0 {
				return nil, fmt.Errorf("still changing: %v", d)
			}
		}
		return snap, nil
	})
}

func (c *cluster) diff(t *testing.T, s *embedded.Snapshot) []string {
	t.Helper()
	d, err := c.Diff(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// containers returns the identity and the restarts of all containers.
func (c *cluster) containers(t *testing.T) map[string]string {
	t.Helper()
	pods, err := c.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			all[p.Namespace+"/"+p.Name+"/"+s.Name] = fmt.Sprintf("%s %s %d %t", p.UID, s.ContainerID, s.RestartCount, s.Ready)
		}
	}
	return all
}

// checkShop looks whether the shop is as newShop left it.
func (c *cluster) checkShop(t *testing.T) {
	t.Helper()
	// Services answer at once: a reset returns when they do.
	if got, err := c.fetch(t.Context(), "http://front.shop.svc.cluster.local/"); err != nil || strings.TrimSpace(got) != "one" {
		t.Errorf("the front says %q, %v", got, err)
	}
	for _, pod := range []string{"store-0", "store-1"} {
		want := "data of " + pod + "\n"
		if got, err := c.fetch(t.Context(), "http://"+pod+".store.shop.svc.cluster.local/"); err != nil || got != want {
			t.Errorf("%s says %q, %v", pod, got, err)
		}
		if got := c.exec(t, "shop", pod, "sh", "-c", "cat /usr/share/nginx/html/index.html /tmp/layer; ls /tmp /usr/share/nginx/html"); got != want+"layer\n/tmp:\nlayer\n\n/usr/share/nginx/html:\nindex.html\n" {
			t.Errorf("the files of %s are %q", pod, got)
		}
	}
	b, err := c.dynamic.Resource(backups).Namespace("shop").Get(t.Context(), "nightly", metav1.GetOptions{})
	if err != nil {
		t.Error(err)
	} else if n, _, _ := unstructured.NestedInt64(b.Object, "spec", "copies"); n != 2 {
		t.Errorf("the backup has %d copies", n)
	}
	auditor := c.as(t, "shop", "auditor")
	if _, err := auditor.RESTClient().Get().AbsPath("/apis/lab.example.com/v1/backups").DoRaw(t.Context()); err != nil {
		t.Errorf("the auditor: %v", err)
	}
	m, err := metrics.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() (none struct{}, err error) {
		list, err := m.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) != 3 {
			err = fmt.Errorf("figures of %d nodes", len(list.Items))
		}
		return none, err
	})
}

// checkWorks looks whether the cluster can still do something new, on every node.
func (c *cluster) checkWorks(t *testing.T, ns string) {
	t.Helper()
	c.apply(t, ns, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe}
spec:
  selector: {matchLabels: {app: probe}}
  template:
    metadata: {labels: {app: probe}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: nginx:1.29, readinessProbe: {httpGet: {port: 80}}}]
---
apiVersion: v1
kind: Service
metadata: {name: probe}
spec: {selector: {app: probe}, ports: [{port: 80}]}
`)
	c.readyPods(t, ns, "app=probe", 3)
	if got := c.awaitFetch(t, "http://probe."+ns+".svc.cluster.local/"); !strings.Contains(got, "Welcome to nginx!") {
		t.Errorf("a new service answers %q", got)
	}
}

// damage is what a careless agent can do to a cluster.
var damage = []struct {
	name string
	do   func(t *testing.T, c *cluster)
}{
	{"files", func(t *testing.T, c *cluster) {
		c.exec(t, "shop", "store-0", "sh", "-c", "echo lost > /usr/share/nginx/html/index.html; rm /tmp/layer; echo > /tmp/new")
		c.exec(t, "shop", "store-1", "sh", "-c", "rm -r /usr/share/nginx/html/index.html /bin; echo > /usr/share/nginx/html/new")
	}},
	{"namespace and definition", func(t *testing.T, c *cluster) {
		must(t, c.client.CoreV1().Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}))
		must(t, c.client.CoreV1().Pods("shop").DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{}))
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		must(t, c.dynamic.Resource(crds).Delete(t.Context(), "backups.lab.example.com", metav1.DeleteOptions{}))
		awaitGone(t, "namespace shop", func() (*v1.Namespace, error) {
			return c.client.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
		})
		awaitGone(t, "backups", func() (*unstructured.UnstructuredList, error) {
			return c.dynamic.Resource(backups).List(t.Context(), metav1.ListOptions{})
		})
	}},
	{"nodes", func(t *testing.T, c *cluster) {
		nodes := c.client.CoreV1().Nodes()
		c.Node("node-3").Fail()
		must(t, nodes.Delete(t.Context(), "node-2", metav1.DeleteOptions{}))
		_, err := nodes.Patch(t.Context(), "node-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":true,"taints":[{"key":"broken","effect":"NoExecute"}]},"metadata":{"labels":{"kubernetes.io/os":"plan9"}}}`), metav1.PatchOptions{})
		must(t, err)
	}},
	{"rights", func(t *testing.T, c *cluster) {
		must(t, c.client.RbacV1().ClusterRoleBindings().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		must(t, c.client.RbacV1().ClusterRoles().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		must(t, c.client.CoreV1().ServiceAccounts("kube-system").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}},
	{"storage", func(t *testing.T, c *cluster) {
		must(t, c.client.StorageV1().StorageClasses().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		must(t, c.client.CoreV1().PersistentVolumes().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}},
	{"add-ons", func(t *testing.T, c *cluster) {
		must(t, c.client.AppsV1().Deployments("kube-system").DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{}))
		must(t, c.client.CoreV1().Services("kube-system").Delete(t.Context(), "kube-dns", metav1.DeleteOptions{}))
		must(t, c.client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}))
		services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
		must(t, c.dynamic.Resource(services).Delete(t.Context(), "v1beta1.metrics.k8s.io", metav1.DeleteOptions{}))
	}},
	{"clutter", func(t *testing.T, c *cluster) {
		c.apply(t, "default", fmt.Sprintf(webDeployment, 5, "clutter"))
		for i := range 200 {
			_, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("clutter-%d", i)}}, metav1.CreateOptions{})
			must(t, err)
		}
	}},
	{"notes", leaveNotes},
	// The last one: from here on nobody can write anything.
	{"admission", func(t *testing.T, c *cluster) {
		c.apply(t, "", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: deny-everything}
webhooks:
- name: deny.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: nowhere, name: nothing}}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]
`)
		awaitTrue(t, "nobody can write", func() bool {
			_, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, metav1.CreateOptions{})
			return apierrors.IsInternalError(err)
		})
	}},
}

// leaveNotes leaves notes for who comes next in what changes by itself.
func leaveNotes(t *testing.T, c *cluster) {
	c.apply(t, "default", `
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: note}, spec: {holderIdentity: "it is the database"}}
---
apiVersion: v1
kind: Event
metadata: {name: note}
involvedObject: {kind: Pod, name: front, namespace: default}
message: it is the database
`)
	_, err := c.client.CoordinationV1().Leases(v1.NamespaceNodeLease).Patch(t.Context(), "node-1", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"note":"it is the database"}}}`), metav1.PatchOptions{})
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever was done to the cluster, a reset leaves no trace of it, again and again.
func TestReset(t *testing.T) {
	c, snap := newShop(t)
	before := c.containers(t)
	for round := range 3 {
		for _, d := range damage {
			d.do(t, c)
		}
		d := c.diff(t, snap)
		if len(d) < 300 {
			t.Fatalf("only %d keys differ after the damage", len(d))
		}
		if lease := "/registry/leases/default/note"; !slices.Contains(d, lease) {
			t.Errorf("%s is not told of", lease)
		}
		must(t, c.Reset(t.Context(), snap))
		if d := c.diff(t, snap); len(d) > 0 {
			t.Errorf("round %d: %d keys differ right after the reset: %v", round, len(d), d)
		}
		c.checkCachesFresh(t)
		c.checkNotes(t)
		c.checkShop(t)
		if after := c.containers(t); !maps.Equal(before, after) {
			t.Errorf("round %d: containers were\n%v\nand are\n%v", round, before, after)
		}
		if d := c.diff(t, snap); len(d) > 0 {
			t.Errorf("round %d: %d keys differ a while after the reset: %v", round, len(d), d)
		}
		c.checkWorks(t, "default")
		if t.Failed() {
			return
		}
	}
	// A snapshot is not changed by what becomes of the cluster.
	must(t, c.Reset(t.Context(), snap))
	c.checkShop(t)
	if d := c.diff(t, snap); len(d) > 0 {
		t.Errorf("in the end %d keys differ: %v", len(d), d)
	}
	c.checkRewrite(t, snap, before)
	must(t, c.Reset(t.Context(), snap)) // It is left as it was.
	if d := c.diff(t, snap); len(d) > 0 {
		t.Errorf("after it was rewritten %d keys differ: %v", len(d), d)
	}
}

// checkNotes looks for what leaveNotes has left.
func (c *cluster) checkNotes(t *testing.T) {
	t.Helper()
	leases, err := c.client.CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, l := range leases.Items {
		if l.Name == "note" || l.Annotations["note"] != "" {
			t.Errorf("a note is in the lease %s/%s", l.Namespace, l.Name)
		}
	}
	_, err = c.client.CoreV1().Events("default").Get(t.Context(), "note", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a note in an event: %v", err)
	}
}

// checkRewrite gives the shop another past and looks whether all believe in it: the API, the controllers,
// who leave it alone, and the nodes.
func (c *cluster) checkRewrite(t *testing.T, snap *embedded.Snapshot, before map[string]string) {
	t.Helper()
	const ago = 100 * time.Hour
	since := time.Now().Add(-ago)
	var told []string // what the logs of the front say
	lived, err := c.Rewrite(snap, func(h *cloud.History) error {
		for _, o := range h.Objects {
			o.SetCreationTimestamp(metav1.NewTime(o.GetCreationTimestamp().Add(-ago)))
			p, ok := o.(*v1.Pod)
			if !ok {
				continue
			}
			for i := range p.Status.ContainerStatuses {
				s := &p.Status.ContainerStatuses[i]
				s.State.Running.StartedAt.Time = s.State.Running.StartedAt.Add(-ago)
			}
		}
		h.Objects = append(h.Objects, &v1.Event{
			TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
			ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "opened", UID: "1", CreationTimestamp: metav1.NewTime(since)},
			InvolvedObject: v1.ObjectReference{Kind: "Namespace", Name: "shop", Namespace: "shop"}, Reason: "Opened",
		})
		for _, m := range h.Nodes {
			m.Booted = m.Booted.Add(-ago)
			for _, k := range m.Containers {
				k.Created, k.Started = k.Created.Add(-ago), k.Started.Add(-ago)
				for i := range k.Log {
					k.Log[i].Time = k.Log[i].Time.Add(-ago)
				}
				k.Log = append([]cloud.Line{{Time: k.Started, Stream: "stdout", Text: "it was a fine day"}}, k.Log...)
			}
		}
		killStore(h)
		return nil
	})
	must(t, err)
	leaveNotes(t, c)
	must(t, c.Reset(t.Context(), lived))
	c.checkNotes(t)
	c.checkCachesFresh(t)
	c.checkShop(t)
	before = maps.Clone(before)
	before["shop/store-0/store"] = strings.Replace(before["shop/store-0/store"], " 0 true", " 2 true", 1)
	if after := c.containers(t); !maps.Equal(before, after) {
		t.Errorf("with another past: containers were\n%v\nand are\n%v", before, after)
	}
	if d := c.diff(t, lived.(*embedded.Snapshot)); len(d) > 0 {
		t.Errorf("%d keys were changed after the past was written: %v", len(d), d)
	}
	if _, err := c.client.CoreV1().Events("shop").Get(t.Context(), "opened", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	for _, p := range c.readyPods(t, "shop", "app=front", 3) {
		if age := time.Since(p.CreationTimestamp.Time); age < ago {
			t.Errorf("%s is %v old", p.Name, age)
		}
		if up := c.exec(t, "shop", p.Name, "cut", "-d.", "-f1", "/proc/uptime"); len(strings.TrimSpace(up)) < len("360000") {
			t.Errorf("the machine of %s is up for %q s", p.Name, up)
		}
		b, err := c.client.CoreV1().Pods("shop").GetLogs(p.Name, &v1.PodLogOptions{Timestamps: true}).DoRaw(t.Context())
		must(t, err)
		told = append(told, string(b))
	}
	b, err := c.client.CoreV1().Pods("shop").GetLogs("store-0", &v1.PodLogOptions{Previous: true}).DoRaw(t.Context())
	if err != nil || string(b) != "I need more memory\n" {
		t.Errorf("the store said before it was killed: %q, %v", b, err)
	}
	if at := c.exec(t, "shop", "store-0", "stat", "-c", "%Y", "/tmp/layer"); strings.TrimSpace(at) > strconv.FormatInt(since.Add(time.Hour).Unix(), 10) {
		t.Errorf("a file of the store is of %s", at)
	}
	// It is killed again, and those before count.
	c.exec(t, "shop", "store-0", "sh", "-c", "kill 1")
	c.awaitPod(t, "shop", "store-0", "started a third time", func(p *v1.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.RestartCount == 3 && s.State.Running != nil
	})
	leases, err := c.client.CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, l := range leases.Items {
		if !l.CreationTimestamp.Time.Before(since) {
			t.Errorf("the lease %s/%s is of %v", l.Namespace, l.Name, l.CreationTimestamp)
		}
	}
	for _, text := range told {
		for line := range strings.Lines(text) {
			stamp, _, _ := strings.Cut(line, " ")
			if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || !at.Before(since.Add(time.Hour)) && !strings.Contains(line, "GET /") {
				t.Errorf("a log has %q, though only users have come since", line)
			}
		}
		if !strings.Contains(text, " it was a fine day\n") || strings.Count(text, "start worker process") > 16 {
			t.Errorf("a log is\n%s", text)
		}
	}
}

// killStore has the store killed twice, an hour after it began.
func killStore(h *cloud.History) {
	for _, o := range h.Objects {
		p, ok := o.(*v1.Pod)
		if !ok || p.Name != "store-0" {
			continue
		}
		s := &p.Status.ContainerStatuses[0]
		for _, m := range h.Nodes {
			for _, k := range m.Containers {
				if "containerd://"+k.ID != s.ContainerID {
					continue
				}
				end := k.Started.Add(time.Hour)
				m.Containers = append(m.Containers, &cloud.Container{
					ID: strings.Repeat("0", len(k.ID)), Sandbox: k.Sandbox, Created: k.Created, Started: k.Started, Finished: end,
					Log:      []cloud.Line{{Time: end, Stream: "stderr", Text: "I need more memory"}},
					Restarts: 1, ExitCode: 137, Reason: "OOMKilled", Like: k.ID,
				})
				s.LastTerminationState.Terminated = &v1.ContainerStateTerminated{
					ExitCode: 137, Reason: "OOMKilled", StartedAt: metav1.NewTime(k.Started.Truncate(time.Second)),
					FinishedAt: metav1.NewTime(end.Truncate(time.Second)), ContainerID: "containerd://" + strings.Repeat("0", len(k.ID)),
				}
				k.Created, k.Started, k.Restarts = end, end.Add(time.Second), 2
				s.RestartCount, s.State.Running.StartedAt = 2, metav1.NewTime(k.Started.Truncate(time.Second))
				return
			}
		}
	}
}

// checkCachesFresh compares what the API server has in its watch caches, from which informers start,
// with what is in the store.
func (c *cluster) checkCachesFresh(t *testing.T) {
	t.Helper()
	lists, err := c.client.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // An aggregated API may need a moment.
		t.Fatal(err)
	}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		must(t, err)
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") || r.Name == "events" || r.Name == "leases" {
				continue
			}
			client := c.dynamic.Resource(gv.WithResource(r.Name))
			versions := func(rv string) map[string]string {
				list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: rv})
				if err != nil {
					t.Errorf("list %s: %v", r.Name, err)
					return nil
				}
				all := map[string]string{}
				for _, o := range list.Items {
					all[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
				}
				return all
			}
			cached, stored := versions("0"), versions("")
			if !maps.Equal(cached, stored) {
				t.Errorf("the cache of %s has %d objects, the store %d", r.Name, len(cached), len(stored))
			}
		}
	}
}

// Taking a snapshot disturbs nobody.
func TestSnapshotUnderLoad(t *testing.T) {
	c := fresh(t, embedded.Options{})
	must(t, c.WaitReady(t.Context()))
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(front, "one", 1))
	c.readyPods(t, ns, "app=front", 3)
	url := fmt.Sprintf("http://front.%s.svc.cluster.local/", ns)
	c.awaitFetch(t, url) // Pods are ready a moment before names and Services lead to them.
	l := startLoad(c, url)
	for range 3 {
		seen := l.count("one")
		awaitTrue(t, "requests are answered", func() bool { return l.count("one") > seen+20 })
		_, err := c.Snapshot(t.Context())
		must(t, err)
	}
	answers, failures := l.stop()
	if len(failures) > 0 {
		t.Errorf("%d of %d requests failed, the first with: %s", len(failures), answers["one"]+len(failures), failures[0])
	}
}

// What a reset replaces is gone: a kubelet's loop that went on would hold its pods, their disks and their logs, some 20
// MB of an application each time.
func TestResetLeavesNoKubelets(t *testing.T) {
	c := fresh(t, embedded.Options{})
	must(t, c.WaitReady(t.Context()))
	snap, err := c.Snapshot(t.Context())
	must(t, err)
	for range 3 {
		must(t, c.Reset(t.Context(), snap))
	}
	awaitTrue(t, "one kubelet a node is left", func() bool {
		var b bytes.Buffer
		must(t, pprof.Lookup("goroutine").WriteTo(&b, 2))
		return bytes.Count(b.Bytes(), []byte("kubelet/status.(*manager).Start.func1(")) == embedded.DefaultNodes
	})
}

// A cluster starts from what another process has saved.
func TestSavedSnapshot(t *testing.T) {
	c, snap := newShop(t)
	before := c.containers(t)
	var saved bytes.Buffer
	if n, err := snap.WriteTo(&saved); err != nil || n != int64(saved.Len()) {
		t.Fatalf("wrote %d bytes of %d, %v", n, saved.Len(), err)
	}
	must(t, c.Close())

	read, err := embedded.ReadSnapshot(bytes.NewReader(saved.Bytes()))
	must(t, err)
	c = fresh(t, embedded.Options{Snapshot: read})
	if d := c.diff(t, snap); len(d) > 0 {
		t.Errorf("%d keys differ after the start: %v", len(d), d)
	}
	c.checkShop(t)
	if after := c.containers(t); !maps.Equal(before, after) {
		t.Errorf("containers were\n%v\nand are\n%v", before, after)
	}
	c.checkWorks(t, "default")
	must(t, c.Reset(t.Context(), read))
	c.checkShop(t)
	if d := c.diff(t, snap); len(d) > 0 {
		t.Errorf("%d keys differ after a reset: %v", len(d), d)
	}
}

func TestReadSnapshotRefuses(t *testing.T) {
	t.Parallel()
	var other bytes.Buffer
	if _, err := (&embedded.Snapshot{Version: "v1.2.3"}).WriteTo(&other); err != nil {
		t.Fatal(err)
	}
	whole := other.Bytes()
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":         {nil, "this is not a snapshot that this version of aiopslab can read"},
		"something else":  {[]byte("apiVersion: v1\nkind: List\nitems: []\n"), "this is not a snapshot that this version of aiopslab can read"},
		"cut short":       {whole[:len(whole)-20], "the snapshot is damaged: unexpected EOF"},
		"another version": {whole, "the snapshot is of Kubernetes v1.2.3, this is "},
	} {
		_, err := embedded.ReadSnapshot(bytes.NewReader(tt.data))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	full := errors.New("no space left on device")
	if _, err := (&embedded.Snapshot{}).WriteTo(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
