package tidboperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

const ns = "tidb-cluster"

// basic is a cluster as its manifest has it.
func basic(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	text := `{"metadata": {"name": "basic", "namespace": "tidb-cluster", "uid": "u"}, "spec": {"version": "v8.1.0",
		"pd": {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {"log": {"level": "info"}}},
		"tikv": {"replicas": 3, "config": "[log]"}, "tidb": {"replicas": 2, "labels": {"app": "basic-tidb"}}}}`
	if err := json.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// direct reads from the cluster itself.
type direct struct{ *fake.Clientset }

func (d direct) service(ns, name string) (*v1.Service, error) {
	return orNil(d.CoreV1().Services(ns).Get(context.Background(), name, metav1.GetOptions{}))
}

func (d direct) configMap(ns, name string) (*v1.ConfigMap, error) {
	return orNil(d.CoreV1().ConfigMaps(ns).Get(context.Background(), name, metav1.GetOptions{}))
}

func (d direct) statefulSet(ns, name string) (*appsv1.StatefulSet, error) {
	return orNil(d.AppsV1().StatefulSets(ns).Get(context.Background(), name, metav1.GetOptions{}))
}

func (d direct) claim(ns, name string) (*v1.PersistentVolumeClaim, error) {
	return orNil(d.CoreV1().PersistentVolumeClaims(ns).Get(context.Background(), name, metav1.GetOptions{}))
}

func (d direct) pod(ns, name string) (*v1.Pod, error) {
	return orNil(d.CoreV1().Pods(ns).Get(context.Background(), name, metav1.GetOptions{}))
}

// quietPD is a PD that notes who was taken out, and says what a test has it say.
type quietPD struct {
	out     []string
	v       view
	evicted []string // pods whose stores may not lead, in the order of the requests; "" is the end of all
	leads   map[string]bool
	deaf    bool // it does not say who is there
}

func (q *quietPD) view(context.Context, *cluster) (*view, error) {
	if q.deaf {
		return nil, errors.New("i/o timeout")
	}
	v := q.v
	v.members, v.stores = maps.Clone(v.members), maps.Clone(v.stores)
	return &v, nil
}

func (q *quietPD) dismiss(_ context.Context, _ *cluster, name string) error {
	q.out = append(q.out, name)
	delete(q.v.members, name)
	return nil
}

func (q *quietPD) retire(_ context.Context, _ *cluster, pod string) (bool, error) {
	q.out = append(q.out, pod)
	return true, nil
}

func (q *quietPD) evict(_ context.Context, _ *cluster, pod string) (bool, error) {
	if n := len(q.evicted); n == 0 || q.evicted[n-1] != pod {
		q.evicted = append(q.evicted, pod)
	}
	return !q.leads[pod], nil
}

func (q *quietPD) readmit(context.Context, *cluster) error {
	q.evicted = append(q.evicted, "")
	return nil
}

// trial is an operator on a cluster in memory, whose controllers are the test.
type trial struct {
	t      *testing.T
	client *fake.Clientset
	pd     *quietPD
	events *record.FakeRecorder
	s      *syncer
}

func newTrial(t *testing.T) *trial {
	x := &trial{
		t: t, client: fake.NewClientset(), events: record.NewFakeRecorder(100),
		pd: &quietPD{v: view{members: map[string]member{}, stores: map[string]storeStatus{}}, leads: map[string]bool{}},
	}
	x.s = &syncer{
		client: x.client, driver: x.pd, events: x.events, get: direct{x.client}, now: time.Now,
		periods: map[string]time.Duration{}, evictions: map[string]eviction{},
	}
	x.countGenerations()
	return x
}

// settle says that all pods of a StatefulSet are ready.
func (x *trial) settle(name string) {
	x.t.Helper()
	sets := x.client.AppsV1().StatefulSets(ns)
	set, err := sets.Get(x.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	n, revision := *set.Spec.Replicas, revisionOf(set)
	set.Status = appsv1.StatefulSetStatus{
		ReadyReplicas: n, Replicas: n, ObservedGeneration: set.Generation, CurrentRevision: revision,
		UpdateRevision: revision,
	}
	if _, err := sets.UpdateStatus(x.t.Context(), set, metav1.UpdateOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

// made brings a cluster up.
func (x *trial) made(c *cluster) {
	for _, name := range []string{pd, tikv, tidb} {
		_, _ = x.s.sync(x.t.Context(), c)
		x.settle("basic-" + name)
	}
	if synced, err := x.s.sync(x.t.Context(), c); err != nil || len(synced) != 3 {
		x.t.Fatal(synced, err)
	}
}

func (x *trial) replicas(name string) int32 {
	x.t.Helper()
	set, err := x.client.AppsV1().StatefulSets(ns).Get(x.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return *set.Spec.Replicas
}

// A component is made when the one before it runs.
func TestOrder(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	for _, name := range []string{pd, tikv, tidb} {
		if set, _ := x.s.get.statefulSet(ns, "basic-"+name); set != nil {
			t.Errorf("%s is there too early", name)
		}
		_, err := x.s.sync(t.Context(), c)
		if name != tidb && (err == nil || !onlyWaits(err)) {
			t.Errorf("%s: %v", name, err)
		}
		x.settle("basic-" + name)
	}
	for _, name := range []string{"basic-pd", "basic-pd-peer", "basic-tikv-peer", "basic-tidb", "basic-tidb-peer"} {
		if s, err := x.s.get.service(ns, name); err != nil || s == nil || s.OwnerReferences[0].Name != "basic" {
			t.Errorf("service %s: %v, %v", name, s, err)
		}
	}
	cm, err := x.s.get.configMap(ns, "basic-pd")
	if err != nil || cm.Data["config-file"] != "[log]\nlevel = \"info\"\n" {
		t.Errorf("%v, %v", cm, err)
	}
	set, _ := x.s.get.statefulSet(ns, "basic-tidb")
	want := map[string]string{
		"app.kubernetes.io/name": "tidb-cluster", "app.kubernetes.io/managed-by": "tidb-operator",
		"app.kubernetes.io/instance": "basic", "app.kubernetes.io/component": "tidb", "app": "basic-tidb",
	}
	if diff := cmp.Diff(want, set.Spec.Template.Labels); diff != "" {
		t.Error(diff)
	}
}

// However many pods are asked for, one comes at a time, and the next when all are ready.
func TestScale(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	x.made(c)
	c.Spec.TiDB.Replicas = 100000
	for range 3 {
		if _, err := x.s.sync(t.Context(), c); err != nil && !onlyWaits(err) {
			t.Fatal(err)
		}
	}
	if n := x.replicas("basic-tidb"); n != 3 {
		t.Errorf("%d pods, and the third is not ready", n)
	}
	c.Spec.TiDB.Replicas, c.Spec.PD.Replicas = 1, 2
	for range 3 {
		if _, err := x.s.sync(t.Context(), c); err != nil && !onlyWaits(err) {
			t.Fatal(err)
		}
	}
	if n := x.replicas("basic-tidb"); n != 1 {
		t.Errorf("%d pods of TiDB", n)
	}
	if n := x.replicas("basic-pd"); n != 2 || !cmp.Equal(x.pd.out, []string{"basic-pd-2"}) {
		t.Errorf("%d pods of PD, %v were taken out", n, x.pd.out)
	}
}

// A cluster that is asked for with too many pods begins with a few.
func TestCreateBounded(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	c.Spec.PD.Replicas = 100000
	_, _ = x.s.sync(t.Context(), c)
	if n := x.replicas("basic-pd"); n != createAtOnce {
		t.Errorf("%d pods at once", n)
	}
}

// What the API server refuses is told, and the cluster is not ready.
func TestRefused(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	x.made(c)
	for len(x.events.Events) > 0 {
		<-x.events.Events
	}
	x.client.PrependReactor("update", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "StatefulSet"}, "basic-tidb", nil)
	})
	c.Spec.TiDB.Tolerations = []v1.Toleration{{Key: "a", Effect: "TAKE_SOME_EFFECT"}}
	synced, err := x.s.sync(t.Context(), c)
	if err == nil || onlyWaits(err) || synced[tidb] || !synced[pd] {
		t.Errorf("%v, %v", synced, err)
	}
	event := <-x.events.Events
	if !strings.HasPrefix(event, "Warning FailedUpdate update StatefulSet basic-tidb in TidbCluster basic failed error:") {
		t.Error(event)
	}
	st, _, err := x.s.observe(t.Context(), c, synced, time.Now())
	if err != nil || st.Conditions[0].Status != v1.ConditionFalse || st.Conditions[0].Reason != "StatefulSetNotUpToDate" {
		t.Errorf("%+v, %v", st, err)
	}
}

// With another storage class, claims are replaced one by one, from the last on, and the next when all pods are ready.
func TestStorageClass(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	x.made(c)
	for i := range 3 {
		x.add(i, "standard", true)
	}
	c.Spec.PD.StorageClassName = ptr.To("ThisIsAStorageClass")
	for range 3 {
		if _, err := x.s.sync(t.Context(), c); err != nil && !onlyWaits(err) {
			t.Fatal(err)
		}
	}
	if !cmp.Equal(x.pd.out, []string{"basic-pd-2"}) {
		t.Fatalf("%v were taken out", x.pd.out)
	}
	if p, _ := x.s.get.claim(ns, "pd-basic-pd-2"); p != nil {
		t.Error("the claim is still there")
	}
	x.add(2, "ThisIsAStorageClass", false)
	for range 3 {
		_, _ = x.s.sync(t.Context(), c)
	}
	if p, _ := x.s.get.claim(ns, "pd-basic-pd-1"); p == nil {
		t.Error("the next claim was replaced though the last is not bound")
	}
	// It is put right.
	c.Spec.PD.StorageClassName = nil
	for range 3 {
		_, _ = x.s.sync(t.Context(), c)
	}
	if p, _ := x.s.get.claim(ns, "pd-basic-pd-2"); p != nil {
		t.Error("the claim that nobody provides for is still there")
	}
	x.add(2, "standard", true)
	x.settle("basic-pd")
	if synced, err := x.s.sync(t.Context(), c); err != nil || !synced[pd] {
		t.Errorf("%v, %v", synced, err)
	}
}

// add makes a pod of PD with its claim.
func (x *trial) add(i int, class string, well bool) {
	x.t.Helper()
	name := fmt.Sprintf("basic-pd-%d", i)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pd-" + name}}
	claim.Spec.StorageClassName, claim.Status.Phase = &class, v1.ClaimPending
	if well {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		claim.Status.Phase = v1.ClaimBound
	}
	if err := x.client.Tracker().Add(p); err != nil {
		x.t.Fatal(err)
	}
	if err := x.client.Tracker().Add(claim); err != nil {
		x.t.Fatal(err)
	}
}

func TestJudge(t *testing.T) {
	c := basic(t)
	well := func() *status {
		m := map[string]member{"a": {Health: true}, "b": {Health: true}, "c": {Health: true}}
		up := map[string]storeStatus{"1": {State: "Up"}, "2": {State: "Up"}, "3": {State: "Up"}}
		return &status{
			PD: &partStatus{Members: m}, TiKV: &partStatus{Stores: up},
			TiDB: &partStatus{Members: map[string]member{"a": {Health: true}, "b": {Health: true}}},
		}
	}
	for reason, change := range map[string]func(*status){
		"Ready":          func(*status) {},
		"PDUnhealthy":    func(s *status) { delete(s.PD.Members, "a") },
		"TiKVStoreNotUp": func(s *status) { s.TiKV.Stores["2"] = storeStatus{State: "Disconnected"} },
		"TiDBUnhealthy":  func(s *status) { s.TiDB.Members["b"] = member{} },
	} {
		s := well()
		change(s)
		if _, got, _ := judge(c, s, true, true); got != reason {
			t.Errorf("got %s, want %s", got, reason)
		}
	}
	if _, got, _ := judge(c, well(), false, true); got != "PDUnhealthy" {
		t.Errorf("PD was not heard, and it is %s", got)
	}
	if _, got, _ := judge(c, well(), true, false); got != "StatefulSetNotUpToDate" {
		t.Error(got)
	}
}
