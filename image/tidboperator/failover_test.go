package tidboperator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// outage is a cluster of which a part fails, at a time of its own.
type outage struct {
	*trial
	c  *cluster
	at time.Time
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	x := &outage{newTrial(t), basic(t), time.Unix(1_800_000_000, 0)}
	x.s.now = func() time.Time { return x.at }
	for _, name := range []string{pd, tikv, tidb} {
		x.c.component(name).MaxFailoverCount = ptr.To[int32](2)
		x.s.periods[name] = failoverPeriod
	}
	x.s.auto = true
	x.made(x.c)
	x.catchUp()
	for len(x.events.Events) > 0 {
		<-x.events.Events
	}
	return x
}

// catchUp has the StatefulSet controller and PD do their part: pods, claims, members and stores for all that is asked for.
func (x *outage) catchUp() {
	x.t.Helper()
	for _, name := range []string{pd, tikv, tidb} {
		x.settle("basic-" + name)
		n := x.replicas("basic-" + name)
		for i := range n {
			pod := fmt.Sprintf("basic-%s-%d", name, i)
			x.pod(pod, true)
			switch name {
			case pd:
				claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pd-" + pod, UID: types.UID(pod)}}
				if err := x.client.Tracker().Add(claim); err != nil && !apierrors.IsAlreadyExists(err) {
					x.t.Fatal(err)
				}
				if _, ok := x.pd.v.members[pod]; !ok {
					x.pd.v.members[pod] = member{Name: pod, ID: fmt.Sprint(100 + i), Health: true}
				}
			case tikv:
				if id := fmt.Sprint(1 + i); x.pd.v.stores[id].ID == "" {
					x.pd.v.stores[id] = storeStatus{ID: id, PodName: pod, State: "Up"}
				}
			}
		}
		if name == tikv {
			maps.DeleteFunc(x.pd.v.stores, func(_ string, s storeStatus) bool { return s.PodName >= fmt.Sprintf("basic-tikv-%d", n) })
		}
	}
}

// pod makes a pod that is ready or not.
func (x *outage) pod(name string, ready bool) {
	x.t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1.PodSpec{NodeName: "n"}}
	if ready {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	}
	_ = x.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), ns, name)
	if err := x.client.Tracker().Add(p); err != nil {
		x.t.Fatal(err)
	}
}

// look is a look of the operator some time later. What it says is what it reads at the next.
func (x *outage) look(after time.Duration) {
	x.t.Helper()
	x.at = x.at.Add(after)
	synced, err := x.s.sync(x.t.Context(), x.c)
	if err != nil && !onlyWaits(err) {
		x.t.Fatal(err)
	}
	st, heard, err := x.s.observe(x.t.Context(), x.c, synced, x.at)
	if err == nil {
		err = x.s.failover(x.t.Context(), x.c, st, heard, x.at)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.c.Status = *st
}

func (x *outage) said() (list []string) {
	for len(x.events.Events) > 0 {
		if e := <-x.events.Events; strings.HasPrefix(e, v1.EventTypeWarning) {
			list = append(list, strings.TrimPrefix(e, v1.EventTypeWarning+" "))
		}
	}
	return list
}

func (x *outage) want(name string, replicas int32, failed ...string) {
	x.t.Helper()
	if n := x.replicas("basic-" + name); n != replicas {
		x.t.Errorf("%d pods of %s, want %d", n, name, replicas)
	}
	var got []string
	p := x.c.Status.part(name)
	for _, f := range p.FailureMembers {
		got = append(got, f.PodName)
	}
	for _, f := range p.FailureStores {
		got = append(got, f.PodName)
	}
	slices.Sort(got)
	if diff := cmp.Diff(failed, got); diff != "" {
		x.t.Errorf("%s: %s", name, diff)
	}
}

// A server of TiDB that is not ready for long gets another beside it, which goes when it is back.
func TestFailoverTiDB(t *testing.T) {
	x := newOutage(t)
	x.look(0)
	x.pod("basic-tidb-1", false)
	x.look(time.Minute)
	x.look(failoverPeriod - time.Second)
	x.want(tidb, 2)
	x.look(time.Second)
	x.want(tidb, 2, "basic-tidb-1")
	if got := x.said(); !cmp.Equal(got, []string{"Unhealthy tidb pod[basic-tidb-1] is unhealthy, msg:tidb[basic-tidb-1] is unhealthy"}) {
		t.Errorf("%q", got)
	}
	// One of the two does not get ready, which must not stand in the way of the third.
	set, _ := x.s.get.statefulSet(ns, "basic-tidb")
	set.Status.ReadyReplicas = 1
	if _, err := x.client.AppsV1().StatefulSets(ns).UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	x.look(time.Second)
	x.want(tidb, 3, "basic-tidb-1")
	x.catchUp()
	x.pod("basic-tidb-1", false)
	x.look(time.Hour)
	x.want(tidb, 3, "basic-tidb-1")
	x.pod("basic-tidb-1", true)
	x.look(time.Second)
	x.look(time.Second)
	x.want(tidb, 2)
}

// When PD does not answer once, it is not forgotten since when somebody has failed. Until it does, the cluster is not
// ready.
func TestOneFailedLook(t *testing.T) {
	x := newOutage(t)
	x.look(0)
	down := x.pd.v.stores["2"]
	down.State = storeDown
	x.pd.v.stores["2"] = down
	lost := x.pd.v.members["basic-pd-1"]
	lost.Health = false
	x.pd.v.members["basic-pd-1"] = lost
	x.look(time.Minute)
	x.pd.deaf = true
	x.look(failoverPeriod)
	if c := x.c.Status.Conditions[0]; c.Status != v1.ConditionFalse || c.Reason != reasonPD {
		t.Errorf("nobody knows, and it is %+v", c)
	}
	if st := x.c.Status; len(st.PD.Members) != 3 || len(st.TiKV.Stores) != 3 || st.PD.Synced || st.TiKV.Synced {
		t.Errorf("%+v, %+v", st.PD, st.TiKV)
	}
	x.want(tikv, 3) // Nobody is replaced for what was so before.
	x.want(pd, 3)
	x.pd.deaf = false
	x.look(time.Second)
	x.want(tikv, 3, "basic-tikv-1")
	x.want(pd, 3, "basic-pd-1")
}

// A pod that there is no place for gets none beside it, and no more are replaced than the specification lets.
func TestFailoverBounds(t *testing.T) {
	for name, change := range map[string]func(x *outage){
		"no failover asked for": func(x *outage) { x.c.Spec.TiDB.MaxFailoverCount = ptr.To[int32](0) },
		"failover switched off": func(x *outage) { x.s.auto = false },
		"not scheduled": func(x *outage) {
			for i := range 2 {
				pod := fmt.Sprintf("basic-tidb-%d", i)
				_ = x.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), ns, pod)
				_ = x.client.Tracker().Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pod}})
			}
		},
	} {
		x := newOutage(t)
		x.pod("basic-tidb-0", false)
		x.pod("basic-tidb-1", false)
		change(x)
		for range 4 {
			x.look(failoverPeriod)
		}
		if n := x.replicas("basic-tidb"); n != 2 {
			t.Errorf("%s: %d pods", name, n)
		}
	}
	x := newOutage(t)
	x.c.Spec.TiDB.MaxFailoverCount = ptr.To[int32](1)
	x.pod("basic-tidb-0", false)
	x.pod("basic-tidb-1", false)
	for range 5 {
		x.look(failoverPeriod)
	}
	x.want(tidb, 3, "basic-tidb-0")
	x.c.Spec.TiDB.Replicas = 0 // Who is not asked for any more has not failed.
	x.look(time.Second)
	x.want(tidb, 2)
}

// A member of PD that does not answer is taken out with its volume, gets another beside it, and comes back as a new one.
func TestFailoverPD(t *testing.T) {
	x := newOutage(t)
	x.look(0)
	fail := func(pods ...string) {
		for _, pod := range pods {
			m := x.pd.v.members[pod]
			m.Health = false
			x.pd.v.members[pod] = m
			x.pod(pod, false)
		}
	}
	fail("basic-pd-1", "basic-pd-2")
	x.look(time.Minute)
	x.look(failoverPeriod)
	x.want(pd, 3) // Most are gone: the one that is left must not decide.
	x.pd.v.members["basic-pd-2"] = member{Name: "basic-pd-2", ID: "102", Health: true}
	x.pod("basic-pd-2", true)
	x.look(time.Second)
	x.want(pd, 3, "basic-pd-1")
	x.look(time.Second)
	if !cmp.Equal(x.pd.out, []string{"basic-pd-1"}) {
		t.Errorf("%v were taken out", x.pd.out)
	}
	if p, _ := x.s.get.pod(ns, "basic-pd-1"); p != nil {
		t.Error("the pod is still there")
	}
	if p, _ := x.s.get.claim(ns, "pd-basic-pd-1"); p != nil {
		t.Error("the claim is still there")
	}
	if got := x.said(); len(got) != 2 || got[1] != "PDMemberDeleted failure member tidb-cluster/basic-pd-1(101) deleted from PD cluster" {
		t.Errorf("%q", got)
	}
	// Its pod is made anew, with another volume, and is not ready yet. It is not expelled again.
	delete(x.pd.v.members, "basic-pd-1")
	x.pod("basic-pd-1", false)
	if err := x.client.Tracker().Add(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pd-basic-pd-1", UID: "new"}}); err != nil {
		t.Fatal(err)
	}
	x.look(time.Second)
	x.want(pd, 4, "basic-pd-1")
	if p, _ := x.s.get.claim(ns, "pd-basic-pd-1"); p == nil || len(x.pd.out) != 1 {
		t.Errorf("expelled twice: %v, %v", p, x.pd.out)
	}
	x.catchUp()
	x.look(time.Second)
	x.look(time.Second)
	x.want(pd, 3)
	if !cmp.Equal(x.pd.out, []string{"basic-pd-1", "basic-pd-3"}) {
		t.Errorf("%v were taken out", x.pd.out)
	}
}

// What came in the place of a member that failed is left alone, even if what is known of it is old.
func TestExpelOnce(t *testing.T) {
	x := newOutage(t)
	p := &partStatus{Members: map[string]member{"basic-pd-1": {ID: "999", Health: true}}}
	for range 2 {
		if err := x.s.expel(t.Context(), x.c, p, failure{PodName: "basic-pd-1", MemberID: "101", PVCUID: "before"}); err != nil {
			t.Fatal(err)
		}
	}
	if pod, _ := x.s.get.pod(ns, "basic-pd-1"); pod == nil || len(x.pd.out) != 0 {
		t.Errorf("%v, %v", pod, x.pd.out)
	}
}

// A store that is down gets another beside it. That stays when the store is back, until somebody asks for it to go.
func TestFailoverTiKV(t *testing.T) {
	for name, ask := range map[string]func(c *cluster){
		"always": func(c *cluster) { c.Spec.TiKV.RecoverFailover = true },
		"once":   func(c *cluster) { c.Spec.TiKV.Failover = &failoverSpec{c.Status.TiKV.FailoverUID} },
	} {
		x := newOutage(t)
		x.look(0)
		is := func(state string) {
			x.pd.v.stores["2"] = storeStatus{ID: "2", PodName: "basic-tikv-1", State: state}
			x.pod("basic-tikv-1", state == "Up")
		}
		is("Disconnected")
		x.look(time.Hour)
		x.look(time.Hour)
		x.want(tikv, 3)
		is(storeDown)
		x.look(time.Second)
		x.look(failoverPeriod - time.Second)
		x.want(tikv, 3)
		x.look(time.Second)
		x.look(time.Second)
		x.want(tikv, 4, "basic-tikv-1")
		if got := x.said(); !cmp.Equal(got, []string{"Unhealthy tikv pod[basic-tikv-1] is unhealthy, msg:store[2] is Down"}) {
			t.Errorf("%q", got)
		}
		x.catchUp()
		is(storeDown)
		if ask(x.c); x.c.Status.TiKV.FailoverUID == "" {
			t.Error("the failover has no name")
		}
		x.look(time.Second)
		x.want(tikv, 4, "basic-tikv-1") // It is not back.
		x.c.Spec.TiKV.RecoverFailover, x.c.Spec.TiKV.Failover = false, &failoverSpec{"another"}
		is("Up")
		x.look(time.Second)
		x.look(time.Second)
		x.want(tikv, 4, "basic-tikv-1") // Nobody asks.
		ask(x.c)
		x.look(time.Second)
		x.look(time.Second)
		x.want(tikv, 3)
		if !cmp.Equal(x.pd.out, []string{"basic-tikv-3"}) {
			t.Errorf("%s: %v were taken out", name, x.pd.out)
		}
	}
}

// Whoever may write the status cannot have the operator make pods without end, or delete what is not PD's.
func TestForgedStatus(t *testing.T) {
	x := newOutage(t)
	x.look(0)
	x.c.Status.TiDB.FailureMembers = map[string]failure{}
	for i := range 1000 {
		x.c.Status.TiDB.FailureMembers[fmt.Sprint(i)] = failure{PodName: fmt.Sprintf("basic-tidb-%d", i%3), MemberID: "x"}
		x.c.Status.TiDB.FailureMembers[fmt.Sprint("0", i)] = failure{PodName: fmt.Sprintf("bank-%d", i)}
	}
	x.pod("basic-tidb-1", false)
	for range 5 {
		x.look(time.Second)
	}
	if n := x.replicas("basic-tidb"); n > 4 {
		t.Errorf("%d pods of TiDB", n)
	}
	x.pod("bank-1", true)
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pd-bank-1", UID: "bank"}}
	if err := x.client.Tracker().Add(claim); err != nil {
		t.Fatal(err)
	}
	x.pod("basic-pd-0", false)
	for _, pod := range []string{"bank-1", "../members/name/basic-pd-1", "basic-pd-3", "basic-pd-01"} {
		x.c.Status.PD.FailureMembers = map[string]failure{pod: {PodName: pod, PVCUID: "bank"}}
		x.look(time.Second)
	}
	if p, _ := x.s.get.pod(ns, "bank-1"); p == nil || len(x.pd.out) != 0 {
		t.Errorf("%v, %v", p, x.pd.out)
	}
}
