package tidboperator

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// evictTime is how long a store may take to give up what it leads. After that its pod is replaced all the same.
const evictTime = time.Minute

// eviction is the store of a pod that is to lead nothing, since its pod is about to be replaced.
type eviction struct {
	pod   string // "" if there is none
	since time.Time
}

// partition is the lowest pod that a StatefulSet may replace by one of a new template; 0 for all.
func partition(set *appsv1.StatefulSet) int32 {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
		return ptr.Deref(r.Partition, 0)
	}
	return 0
}

// holdBack keeps a StatefulSet from replacing pods by those of a new template: [syncer.roll] lets them go one by one.
func holdBack(set *appsv1.StatefulSet) {
	if set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		n := ptr.Deref(set.Spec.Replicas, 1)
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
	}
}

// roll takes an update of TiKV a step further: from the last pod to the first, each is replaced when those before it
// are ready again and its store leads nothing any more, so that users do not wait for an election.
func (s *syncer) roll(ctx context.Context, c *cluster, set *appsv1.StatefulSet) error {
	under, known := s.evictions[c.Name]
	if partition(set) == 0 && known && under.pod == "" {
		return nil
	}
	if set.Status.ObservedGeneration < set.Generation {
		return s.unlessIdle(set, "waiting for the update of "+set.Name+" to begin")
	}
	for i := ptr.Deref(set.Spec.Replicas, 1) - 1; i >= 0; i-- {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		p, err := s.get.pod(c.Namespace, name)
		if err != nil {
			return err
		}
		isNew := p != nil && p.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision
		switch {
		case isNew && ready(p):
			continue
		case isNew || i >= partition(set):
			return s.unlessIdle(set, fmt.Sprintf("TidbCluster: [%s/%s]'s upgraded tikv pod: [%s] is not all ready",
				c.Namespace, c.Name, name))
		}
		if p != nil {
			if err := s.evict(ctx, c, name, under); err != nil {
				return err
			}
		}
		set.Spec.UpdateStrategy.RollingUpdate.Partition = &i
		return errWait(fmt.Sprintf("TidbCluster: [%s/%s]'s tikv pod: [%s] is upgraded", c.Namespace, c.Name, name))
	}
	if err := s.driver.readmit(ctx, c); err != nil {
		if partition(set) == 0 {
			return s.unlessIdle(set, "the leaders of "+set.Name+" cannot be given back: "+err.Error())
		}
		return err
	}
	s.evictions[c.Name] = eviction{}
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
		r.Partition = ptr.To[int32](0)
	}
	return nil
}

// unlessIdle is a wait, but for a StatefulSet that nobody updates: there it is no more than a look at what an operator
// before this one may have left behind.
func (s *syncer) unlessIdle(set *appsv1.StatefulSet, why string) error {
	if st := set.Status; partition(set) == 0 && st.CurrentRevision == st.UpdateRevision {
		return nil
	}
	return errWait(why)
}

// evict waits until the store of a pod leads nothing, or has had its time for that. The one before leads again.
func (s *syncer) evict(ctx context.Context, c *cluster, pod string, under eviction) error {
	if under.pod != pod {
		if err := s.driver.readmit(ctx, c); err != nil {
			return fmt.Errorf("end the eviction of leaders: %w", err)
		}
		under = eviction{pod, s.now()}
		s.evictions[c.Name] = under
	}
	done, err := s.driver.evict(ctx, c, pod)
	if done || s.now().Sub(under.since) >= evictTime {
		return nil
	}
	if err != nil {
		return fmt.Errorf("evict the leaders of %s: %w", pod, err)
	}
	return errSoon(fmt.Sprintf("TidbCluster: [%s/%s]'s tikv pod: [%s] is evicting leader", c.Namespace, c.Name, pod))
}
