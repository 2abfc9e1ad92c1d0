package tidboperator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Phases of a component.
const (
	phaseNormal  = "Normal"
	phaseUpgrade = "Upgrade"
	phaseScale   = "Scale"
)

// Reasons for which a cluster is not ready that PD tells.
const (
	reasonPD   = "PDUnhealthy"
	reasonTiKV = "TiKVStoreNotUp"
)

// observe is the status of a cluster at the moment. heard is false if PD does not say who is there.
func (s *syncer) observe(ctx context.Context, c *cluster, synced map[string]bool, now time.Time,
) (st *status, heard bool, err error) {
	st = &status{ClusterID: c.Status.ClusterID}
	parts := map[string]**partStatus{pd: &st.PD, tikv: &st.TiKV, tidb: &st.TiDB}
	current := true // All StatefulSets are what they are to be.
	for name, into := range parts {
		p := c.component(name)
		if p == nil {
			continue
		}
		set, err := s.get.statefulSet(c.Namespace, c.Name+"-"+name)
		if err != nil {
			return nil, false, err
		}
		part := &partStatus{Synced: synced[name], Phase: phaseNormal}
		*into = part
		if was := c.Status.part(name); was != nil {
			part.FailureMembers, part.FailureStores = maps.Clone(was.FailureMembers), maps.Clone(was.FailureStores)
			part.FailoverUID = was.FailoverUID
		}
		if set == nil {
			current = false
			continue
		}
		part.StatefulSet = set.Status.DeepCopy()
		part.Image = set.Spec.Template.Spec.Containers[0].Image
		switch {
		case c.desired(name) != ptr.Deref(set.Spec.Replicas, 1):
			part.Phase = phaseScale
		case set.Status.CurrentRevision != set.Status.UpdateRevision || partition(set) > 0:
			part.Phase = phaseUpgrade
		}
		current = current && synced[name] && set.Status.CurrentRevision == set.Status.UpdateRevision &&
			partition(set) == 0 && c.desired(name) == ptr.Deref(set.Spec.Replicas, 1)
	}
	heard = s.ask(ctx, c, st)
	if err := s.servers(c, st); err != nil {
		return nil, false, err
	}
	st.date(&c.Status, now)
	status, reason, message := judge(c, st, heard, current)
	st.Conditions = []*condition{transition(c.Status.Conditions, status, reason, message, now)}
	return st, heard, nil
}

// ask notes what PD says. If it says nothing, what it said last stays, or it would be lost since when that is so.
func (s *syncer) ask(ctx context.Context, c *cluster, st *status) (heard bool) {
	if st.PD == nil || st.PD.StatefulSet == nil {
		return false
	}
	v, err := s.driver.view(ctx, c)
	if err != nil {
		st.keep(&c.Status)
		return false
	}
	st.ClusterID, st.PD.Members, st.PD.Leader = v.clusterID, v.members, v.leader
	if st.TiKV != nil {
		st.TiKV.Stores = v.stores
	}
	return true
}

// keep takes over what PD said last.
func (st *status) keep(was *status) {
	st.PD.Synced = false
	if was.PD != nil {
		st.PD.Members = maps.Clone(was.PD.Members)
		if l := was.PD.Leader; l != nil {
			st.PD.Leader = ptr.To(*l)
		}
	}
	if st.TiKV == nil {
		return
	}
	st.TiKV.Synced = false
	if was.TiKV != nil {
		st.TiKV.Stores = maps.Clone(was.TiKV.Stores)
	}
}

// servers notes which pods of TiDB are ready.
func (s *syncer) servers(c *cluster, st *status) error {
	if st.TiDB == nil || st.TiDB.StatefulSet == nil {
		return nil
	}
	st.TiDB.Members = map[string]member{}
	for i := range max(st.TiDB.StatefulSet.Replicas, st.TiDB.StatefulSet.ReadyReplicas) {
		name := fmt.Sprintf("%s-%s-%d", c.Name, tidb, i)
		p, err := s.get.pod(c.Namespace, name)
		if err != nil {
			return err
		}
		m := member{Name: name}
		if p != nil {
			m.Health, m.Node = ready(p), p.Spec.NodeName
		}
		st.TiDB.Members[name] = m
	}
	return nil
}

// date notes since when members and stores are as they are.
func (st *status) date(was *status, now time.Time) {
	for _, name := range []string{pd, tidb} {
		part, before := st.part(name), was.part(name)
		if part == nil {
			continue
		}
		for k, m := range part.Members {
			m.LastTransitionTime = moment(now)
			if before != nil {
				old, ok := before.Members[k]
				if ok && old.Health == m.Health && old.ID == m.ID && !old.LastTransitionTime.IsZero() {
					m.LastTransitionTime = old.LastTransitionTime
				}
			}
			part.Members[k] = m
		}
		if l := part.Leader; l != nil {
			l.LastTransitionTime = part.Members[l.Name].LastTransitionTime
		}
	}
	if st.TiKV == nil {
		return
	}
	for id, x := range st.TiKV.Stores {
		x.LastTransitionTime = moment(now)
		if was.TiKV != nil {
			if old, ok := was.TiKV.Stores[id]; ok && old.State == x.State && !old.LastTransitionTime.IsZero() {
				x.LastTransitionTime = old.LastTransitionTime
			}
		}
		st.TiKV.Stores[id] = x
	}
}

// judge says whether a cluster is ready, or why it is not. It is not if PD was not heard.
func judge(c *cluster, st *status, heard, current bool) (v1.ConditionStatus, string, string) {
	healthy := func(list map[string]member, want int32) bool {
		n := int32(0)
		for _, m := range list {
			if m.Health {
				n++
			}
		}
		return n >= want && int(n) == len(list)
	}
	up := int32(0)
	if st.TiKV != nil {
		for _, s := range st.TiKV.Stores {
			if s.State == "Up" {
				up++
			}
		}
	}
	switch {
	case !current:
		return v1.ConditionFalse, "StatefulSetNotUpToDate", "Statefulset(s) are in progress"
	case c.Spec.PD != nil && (!heard || !healthy(st.PD.Members, c.Spec.PD.Replicas)):
		return v1.ConditionFalse, reasonPD, "PD(s) are not healthy"
	case c.Spec.TiKV != nil && (up < c.Spec.TiKV.Replicas || int(up) != len(st.TiKV.Stores)):
		return v1.ConditionFalse, reasonTiKV, "TiKV store(s) are not up"
	case c.Spec.TiDB != nil && !healthy(st.TiDB.Members, c.Spec.TiDB.Replicas):
		return v1.ConditionFalse, "TiDBUnhealthy", "TiDB(s) are not healthy"
	}
	return v1.ConditionTrue, "Ready", "TiDB cluster is fully up and running"
}

// transition is the condition Ready, with the times of the one before if it is the same.
func transition(old []*condition, status v1.ConditionStatus, reason, message string, now time.Time) *condition {
	at := metav1.NewTime(now.Truncate(time.Second))
	c := &condition{
		Type: "Ready", Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
	i := slices.IndexFunc(old, func(o *condition) bool { return o.Type == c.Type })
	if i < 0 {
		return c
	}
	if o := old[i]; o.Status == c.Status {
		c.LastTransitionTime = o.LastTransitionTime
		if o.Reason == c.Reason && o.Message == c.Message {
			c.LastUpdateTime = o.LastUpdateTime
		}
	}
	return c
}
