package tidboperator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
)

const (
	// failoverPeriod is how long a member must have failed before it is replaced, if no flag says otherwise.
	failoverPeriod = 5 * time.Minute
	// maxFailover is how many members of a component are replaced at most, if its specification does not say.
	maxFailover = 3
	// storeDown is what PD calls a store that it has not heard of for so long that others are to take its data.
	storeDown = "Down"
)

// failure is a member or a store that another pod was, or will be, added for.
type failure struct {
	PodName       string      `json:"podName,omitempty"`
	MemberID      string      `json:"memberID,omitempty"`
	PVCUID        types.UID   `json:"pvcUID,omitempty"`
	MemberDeleted bool        `json:"memberDeleted,omitempty"` // of PD: it is out, and its volume is gone
	StoreID       string      `json:"storeID,omitempty"`
	CreatedAt     metav1.Time `json:"createdAt,omitempty"`
}

// spares is how many pods a component has more than its specification says, for those that failed. Only pods that are
// asked for can have failed, each once, whatever the status says: others may write it, too.
func (c *cluster) spares(name string) int32 {
	p := c.Status.part(name)
	if p == nil {
		return 0
	}
	failed := map[string]bool{}
	for _, f := range p.FailureStores {
		failed[f.PodName] = c.wants(name, f.PodName)
	}
	for _, f := range p.FailureMembers { // One of PD is replaced when it is out.
		failed[f.PodName] = c.wants(name, f.PodName) && (name != pd || f.MemberDeleted)
	}
	n := int32(0)
	for _, counts := range failed {
		if counts {
			n++
		}
	}
	return n
}

// desired is how many pods a component is to have.
func (c *cluster) desired(name string) int32 { return c.component(name).Replicas + c.spares(name) }

// wants reports whether the specification asks for a pod; one that was added for another is none.
func (c *cluster) wants(component, pod string) bool {
	n, err := strconv.ParseInt(strings.TrimPrefix(pod, c.Name+"-"+component+"-"), 10, 32)
	return err == nil && n >= 0 && int32(n) < c.component(component).Replicas &&
		pod == fmt.Sprintf("%s-%s-%d", c.Name, component, n)
}

// failover replaces who has failed for long: it notes them in the status, of which the next look makes more pods. Who
// is noted already is forgotten when all is well again; a store of TiKV only when the specification asks for it. If PD
// was not heard, nobody knows how its members and stores are.
func (s *syncer) failover(ctx context.Context, c *cluster, st *status, heard bool, now time.Time) error {
	if !s.auto {
		return nil
	}
	if p := st.TiKV; p != nil && heard {
		s.failoverTiKV(c, p, now)
	}
	if p := st.TiDB; p != nil {
		if err := s.failoverTiDB(c, p, now); err != nil {
			return err
		}
	}
	if p := st.PD; p != nil && heard {
		return s.failoverPD(ctx, c, p, now)
	}
	return nil
}

// limit is how many failures of a component may be noted.
func limit(p *component) int { return int(ptr.Deref(p.MaxFailoverCount, maxFailover)) }

// started reports whether all pods that a component is to have are there.
func started(c *cluster, name string, p *partStatus) bool {
	return p.StatefulSet != nil && p.StatefulSet.Replicas == c.desired(name)
}

// unhealthy tells of somebody who will be replaced.
func (s *syncer) unhealthy(c *cluster, component, pod, why string) {
	s.events.Event(c.reference(), v1.EventTypeWarning, "Unhealthy",
		fmt.Sprintf("%s pod[%s] is unhealthy, msg:%s", component, pod, why))
}

// allWell reports whether the pods that a specification asks for are ready and well. Those that were added do not
// count: they are about to go.
func (s *syncer) allWell(c *cluster, name string, well func(pod string) bool) bool {
	for i := range c.component(name).Replicas {
		pod := fmt.Sprintf("%s-%s-%d", c.Name, name, i)
		p, err := s.get.pod(c.Namespace, pod)
		if err != nil || p == nil || !ready(p) || !well(pod) {
			return false
		}
	}
	return true
}

// forgetUndesired drops failures of pods that are not asked for any more.
func (c *cluster) forgetUndesired(component string, list map[string]failure) {
	maps.DeleteFunc(list, func(_ string, f failure) bool { return !c.wants(component, f.PodName) })
}

func (s *syncer) failoverTiKV(c *cluster, p *partStatus, now time.Time) {
	spec := c.Spec.TiKV
	c.forgetUndesired(tikv, p.FailureStores)
	up := func(pod string) bool {
		n := 0
		for _, x := range p.Stores {
			if x.PodName == pod {
				if x.State != "Up" {
					return false
				}
				n++
			}
		}
		return n > 0
	}
	asked := spec.RecoverFailover ||
		spec.Failover != nil && spec.Failover.RecoverByUID != "" && spec.Failover.RecoverByUID == p.FailoverUID
	if len(p.FailureStores) > 0 && asked && s.allWell(c, tikv, up) {
		p.FailureStores, p.FailoverUID = nil, ""
		return
	}
	if !started(c, tikv, p) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(p.Stores)) {
		x := p.Stores[id]
		known := slices.ContainsFunc(slices.Collect(maps.Values(p.FailureStores)), func(f failure) bool {
			return f.PodName == x.PodName
		})
		if known || x.State != storeDown || now.Sub(x.LastTransitionTime.Time) < s.periods[tikv] ||
			!c.wants(tikv, x.PodName) || len(p.FailureStores) >= limit(spec) {
			continue
		}
		if p.FailureStores == nil {
			p.FailureStores = map[string]failure{}
		}
		if p.FailoverUID == "" {
			p.FailoverUID = uuid.NewUUID()
		}
		p.FailureStores[id] = failure{PodName: x.PodName, StoreID: id, CreatedAt: moment(now)}
		s.unhealthy(c, tikv, x.PodName, fmt.Sprintf("store[%s] is Down", id))
	}
}

func (s *syncer) failoverTiDB(c *cluster, p *partStatus, now time.Time) error {
	c.forgetUndesired(tidb, p.FailureMembers)
	if len(p.FailureMembers) > 0 && s.allWell(c, tidb, func(pod string) bool { return p.Members[pod].Health }) {
		p.FailureMembers = nil
		return nil
	}
	maps.DeleteFunc(p.FailureMembers, func(_ string, f failure) bool { return p.Members[f.PodName].Health })
	if !started(c, tidb, p) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Members)) {
		m := p.Members[name]
		if _, known := p.FailureMembers[name]; known || m.Health || !c.wants(tidb, name) ||
			now.Sub(m.LastTransitionTime.Time) < s.periods[tidb] || len(p.FailureMembers) >= limit(c.Spec.TiDB) {
			continue
		}
		if pod, err := s.get.pod(c.Namespace, name); err != nil || pod == nil || pod.Spec.NodeName == "" {
			if err != nil {
				return err
			}
			continue // There is no place for it, so there is none for another.
		}
		if p.FailureMembers == nil {
			p.FailureMembers = map[string]failure{}
		}
		p.FailureMembers[name] = failure{PodName: name, CreatedAt: moment(now)}
		s.unhealthy(c, tidb, name, fmt.Sprintf("tidb[%s] is unhealthy", name))
		break // The next at the next look.
	}
	return nil
}

// failoverPD replaces one member at a time, and only if the others can agree on it.
func (s *syncer) failoverPD(ctx context.Context, c *cluster, p *partStatus, now time.Time) error {
	c.forgetUndesired(pd, p.FailureMembers)
	if len(p.FailureMembers) > 0 && s.allWell(c, pd, func(pod string) bool { return p.Members[pod].Health }) {
		p.FailureMembers = nil
		return nil
	}
	healthy := 0
	for _, m := range p.Members {
		if m.Health {
			healthy++
		}
	}
	if 2*healthy <= len(p.Members) {
		return nil
	}
	for name, f := range p.FailureMembers {
		if f.MemberDeleted {
			continue
		}
		if err := s.expel(ctx, c, p, f); err != nil {
			return err
		}
		f.MemberDeleted = true
		p.FailureMembers[name] = f
		return nil
	}
	if !started(c, pd, p) || len(p.FailureMembers) >= limit(c.Spec.PD) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Members)) {
		m := p.Members[name]
		if _, known := p.FailureMembers[name]; known || m.Health || !c.wants(pd, name) ||
			now.Sub(m.LastTransitionTime.Time) < s.periods[pd] {
			continue
		}
		claim, err := s.get.claim(c.Namespace, pd+"-"+name)
		if err != nil || claim == nil {
			return err
		}
		if p.FailureMembers == nil {
			p.FailureMembers = map[string]failure{}
		}
		p.FailureMembers[name] = failure{PodName: name, MemberID: m.ID, PVCUID: claim.UID, CreatedAt: moment(now)}
		s.unhealthy(c, pd, name, fmt.Sprintf("pd member[%s] is unhealthy", m.ID))
		return nil
	}
	return nil
}

// expel takes a member out of PD and deletes its pod and its claim, so that the StatefulSet makes it anew. It may be
// done twice: a member, a claim or a pod that came in the place of the one that failed is left alone.
func (s *syncer) expel(ctx context.Context, c *cluster, p *partStatus, f failure) error {
	if p.Members[f.PodName].ID == f.MemberID {
		if err := s.driver.dismiss(ctx, c, f.PodName); err != nil {
			return fmt.Errorf("delete member %s: %w", f.PodName, err)
		}
		s.events.Event(c.reference(), v1.EventTypeWarning, "PDMemberDeleted", fmt.Sprintf(
			"failure member %s/%s(%s) deleted from PD cluster", c.Namespace, f.PodName, f.MemberID))
	}
	claim, err := s.get.claim(c.Namespace, pd+"-"+f.PodName)
	if err != nil || claim == nil || claim.UID != f.PVCUID {
		return err
	}
	pod, err := s.get.pod(c.Namespace, f.PodName)
	if err != nil {
		return err
	}
	only := func(uid types.UID) metav1.DeleteOptions {
		return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
	}
	core := s.client.CoreV1()
	// The claim goes when no pod uses it any more, and a StatefulSet makes no pod with a claim that is about to go.
	err = core.PersistentVolumeClaims(c.Namespace).Delete(ctx, claim.Name, only(claim.UID))
	if err == nil && pod != nil {
		err = core.Pods(c.Namespace).Delete(ctx, pod.Name, only(pod.UID))
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// moment is a time as the API keeps it.
func moment(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
