package tidboperator

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// revisionOf is the name that the StatefulSet controller would give to a template.
func revisionOf(set *appsv1.StatefulSet) string {
	h := fnv.New32a()
	b, _ := json.Marshal(set.Spec.Template)
	h.Write(b)
	return fmt.Sprintf("%s-%x", set.Name, h.Sum32())
}

// countGenerations has the API server count the changes of a StatefulSet's specification, as the real one does.
func (x *trial) countGenerations() {
	gvr := appsv1.SchemeGroupVersion.WithResource("statefulsets")
	x.client.PrependReactor("update", "statefulsets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		next := a.(clienttesting.UpdateAction).GetObject().(*appsv1.StatefulSet).DeepCopy()
		if a.GetSubresource() != "" {
			return false, nil, nil
		}
		was, err := x.client.Tracker().Get(gvr, a.GetNamespace(), next.Name)
		if err != nil {
			return true, nil, err
		}
		old := was.(*appsv1.StatefulSet)
		next.Status, next.Generation = old.Status, old.Generation
		if !equality.Semantic.DeepEqual(next.Spec, old.Spec) {
			next.Generation++
		}
		return true, next, x.client.Tracker().Update(gvr, next, a.GetNamespace())
	})
}

// lagging shows StatefulSets as they were when it last looked, as an informer does in the moment after a write.
type lagging struct {
	direct
	seen map[string]*appsv1.StatefulSet
}

func (l *lagging) statefulSet(_, name string) (*appsv1.StatefulSet, error) { return l.seen[name], nil }

func (l *lagging) look(ctx context.Context) {
	for _, name := range []string{"basic-pd", "basic-tikv", "basic-tidb"} {
		l.seen[name], _ = l.direct.statefulSet(ns, name)
	}
}

// lag has the operator read what was there before its last writes, and returns a step of it.
func (x *trial) lag(c *cluster) (step func() error) {
	l := &lagging{direct{x.client}, map[string]*appsv1.StatefulSet{}}
	x.s.get = l
	return func() error {
		l.look(x.t.Context())
		_, err := x.s.sync(x.t.Context(), c)
		return err
	}
}

// image is what a component is to run.
func (x *trial) image(name string) string {
	x.t.Helper()
	set, err := x.client.AppsV1().StatefulSets(ns).Get(x.t.Context(), "basic-"+name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return set.Spec.Template.Spec.Containers[0].Image
}

// rolling says that the StatefulSet controller has begun with a change.
func (x *trial) rolling(name string) {
	x.t.Helper()
	sets := x.client.AppsV1().StatefulSets(ns)
	set, err := sets.Get(x.t.Context(), "basic-"+name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	set.Status.ObservedGeneration, set.Status.UpdateRevision = set.Generation, revisionOf(set)
	if _, err := sets.UpdateStatus(x.t.Context(), set, metav1.UpdateOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

// A new version goes to PD, then to TiKV, then to TiDB, each when the one before runs it, however old what the
// operator reads is.
func TestUpgrade(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	x.made(c)
	step := x.lag(c)
	c.Spec.Version = "v8.5.0"
	list := []string{pd, tikv, tidb}
	check := func(when string, done int) {
		t.Helper()
		for i, name := range list {
			want := "pingcap/" + name + ":v8.1.0"
			if i < done {
				want = "pingcap/" + name + ":v8.5.0"
			}
			if got := x.image(name); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
	}
	for i, name := range list {
		for _, when := range []string{"just asked for", "not yet noticed"} {
			if err := step(); err != nil && !onlyWaits(err) {
				t.Fatal(err)
			}
			check(name+" was "+when, i+1)
		}
		x.rolling(name)
		_ = step()
		check(name+" is rolling", i+1)
		if name == tikv {
			x.letGo(step, func() { check("pods of TiKV are let go", i+1) })
		}
		x.settle("basic-" + name)
	}
	if err := step(); err != nil {
		t.Error(err)
	}
}

// letGo plays the StatefulSet controller while the operator lets go of TiKV's pods: it replaces those that it may.
func (x *trial) letGo(step func() error, each func()) {
	x.t.Helper()
	for range 10 {
		set, err := x.client.AppsV1().StatefulSets(ns).Get(x.t.Context(), "basic-tikv", metav1.GetOptions{})
		if err != nil {
			x.t.Fatal(err)
		}
		for i := partition(set); i < *set.Spec.Replicas; i++ {
			x.tikvPod(i, revisionOf(set))
		}
		if partition(set) == 0 {
			x.settle("basic-tikv")
			_ = step()
			return
		}
		x.rolling(tikv)
		if err := step(); err != nil && !onlyWaits(err) {
			x.t.Fatal(err)
		}
		each()
	}
	x.t.Error("the pods of TiKV are held for good")
}

// tikvPod makes a pod of TiKV that is ready.
func (x *trial) tikvPod(i int32, revision string) {
	x.t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: fmt.Sprintf("basic-tikv-%d", i),
		Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
	}}
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	_ = x.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), ns, p.Name)
	if err := x.client.Tracker().Add(p); err != nil {
		x.t.Fatal(err)
	}
}

// Pods of TiKV are replaced from the last to the first, each when its store leads nothing and the one before is ready
// again. A store that does not give up what it leads is not waited for for ever.
func TestEvictLeaders(t *testing.T) {
	x := newTrial(t)
	c := basic(t)
	x.made(c)
	at := time.Unix(1_800_000_000, 0)
	x.s.now = func() time.Time { return at }
	set := func() *appsv1.StatefulSet {
		s, err := x.client.AppsV1().StatefulSets(ns).Get(t.Context(), "basic-tikv", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for i := range int32(3) {
		x.tikvPod(i, revisionOf(set()))
	}
	step := x.lag(c)
	if _ = step(); len(x.pd.evicted) != 1 || partition(set()) != 0 {
		t.Errorf("an operator that begins: %q, %d", x.pd.evicted, partition(set()))
	}
	x.pd.evicted = nil
	c.Spec.TiKV.Version = ptr.To("v8.5.0")
	x.pd.leads["basic-tikv-2"] = true
	expect := func(held int32, evicted ...string) {
		t.Helper()
		err := step()
		if err != nil && !onlyWaits(err) {
			t.Fatal(err)
		}
		if got := partition(set()); got != held || !slices.Equal(x.pd.evicted, evicted) {
			t.Errorf("pods from %d on may go, want %d; evicted are %q, want %q; %v", got, held, x.pd.evicted, evicted, err)
		}
		if upToDate(set()) {
			t.Error("it passes for done")
		}
	}
	expect(3)
	expect(3) // The controller has not seen it yet.
	x.rolling(tikv)
	expect(3, "", "basic-tikv-2")
	at = at.Add(time.Second)
	expect(3, "", "basic-tikv-2")
	x.pd.leads["basic-tikv-2"] = false
	expect(2, "", "basic-tikv-2")
	x.rolling(tikv)
	expect(2, "", "basic-tikv-2") // The pod is still the old one.
	x.tikvPod(2, revisionOf(set()))
	x.pd.leads["basic-tikv-1"] = true
	expect(2, "", "basic-tikv-2", "", "basic-tikv-1")
	at = at.Add(evictTime)
	expect(1, "", "basic-tikv-2", "", "basic-tikv-1")
	x.rolling(tikv)
	x.tikvPod(1, revisionOf(set()))
	expect(0, "", "basic-tikv-2", "", "basic-tikv-1", "", "basic-tikv-0")
	x.rolling(tikv)
	expect(0, "", "basic-tikv-2", "", "basic-tikv-1", "", "basic-tikv-0") // The last one is still evicted.
	x.tikvPod(0, revisionOf(set()))
	x.settle("basic-tikv")
	if err := step(); err != nil || x.pd.evicted[len(x.pd.evicted)-1] != "" {
		t.Errorf("%v, %q", err, x.pd.evicted)
	}
	n := len(x.pd.evicted)
	if err := step(); err != nil || len(x.pd.evicted) != n || !upToDate(set()) {
		t.Errorf("%v, %q", err, x.pd.evicted)
	}
}

// A change that the API server refuses holds back the components after it, and only these.
func TestRefusedHoldsBack(t *testing.T) {
	for i, refused := range []string{pd, tikv, tidb} {
		x := newTrial(t)
		c := basic(t)
		x.made(c)
		for len(x.events.Events) > 0 {
			<-x.events.Events
		}
		asked := 0
		x.client.PrependReactor("update", "statefulsets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			set := a.(clienttesting.UpdateAction).GetObject().(*appsv1.StatefulSet)
			if a.GetSubresource() != "" || set.Name != "basic-"+refused {
				return false, nil, nil
			}
			asked++
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "StatefulSet"}, set.Name, nil)
		})
		step := x.lag(c)
		c.Spec.Version = "v8.5.0"
		for range 12 {
			if err := step(); err != nil && !onlyWaits(err) && !strings.Contains(err.Error(), "is invalid") {
				t.Fatal(err)
			}
			set, err := direct{x.client}.statefulSet(ns, "basic-tikv")
			if err != nil {
				t.Fatal(err)
			}
			for n := partition(set); n < *set.Spec.Replicas; n++ {
				x.tikvPod(n, revisionOf(set))
			}
			for _, name := range []string{pd, tikv, tidb} {
				x.settle("basic-" + name)
			}
		}
		for j, name := range []string{pd, tikv, tidb} {
			if got, updated := x.image(name), j < i; strings.HasSuffix(got, "v8.5.0") != updated {
				t.Errorf("%s was refused: %s", refused, got)
			}
		}
		said := map[string]int{}
		for len(x.events.Events) > 0 {
			said[strings.Join(strings.Fields(<-x.events.Events)[:5], " ")]++
		}
		if n := said[v1.EventTypeWarning+" FailedUpdate update StatefulSet basic-"+refused]; n != asked || n < 2 {
			t.Errorf("%s was refused: %d events in %v", refused, n, said)
		}
	}
}
