package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/aiopslab/aiopslab/kit/past"
)

// cast is who was there in the past.
func (c *chronicle) cast() past.Cast {
	cast := past.Cast{Gone: c.gone(), Sets: map[string]time.Time{}}
	for _, o := range c.Objects {
		if s, ok := o.(*appsv1.ReplicaSet); ok {
			cast.Sets[s.Namespace+"/"+s.Name] = s.CreationTimestamp.Time
		}
	}
	return cast
}

// gone are the pods that were there before those of the present, as far back as telemetry tells. A pod took the
// place of one of its own release if something had evicted that, and of one of the release before.
func (c *chronicle) gone() (list []past.Gone) {
	since := c.Now.Add(-past.Window)
	for _, d := range c.deployments {
		sets := c.sets[d.UID]
		if len(sets) == 0 {
			continue
		}
		current := sets[0]
		older := slices.SortedFunc(slices.Values(c.old[d.UID]), func(a, b *appsv1.ReplicaSet) int {
			return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		for i, p := range c.pods[current.UID] {
			until := p.CreationTimestamp.Time
			for k, set := range append([]*appsv1.ReplicaSet{current}, older...) {
				from := set.CreationTimestamp.Time
				if !until.After(since) {
					break
				}
				if k == 0 && until.Sub(from) < settled { // It is the first of its release.
					until = from
					continue
				}
				list = append(list, past.Gone{
					Namespace: p.Namespace, Pod: c.goneName(set, i), Owner: set.Name, Successor: p.Name,
					Heir: current.Name, From: from, To: until,
				})
				until = from
			}
		}
	}
	return list
}

// goneName is the name that the ith pod of a ReplicaSet had.
func (c *chronicle) goneName(set *appsv1.ReplicaSet, i int) string {
	return set.Name + "-" + c.suffix(fmt.Sprintf("%s %d", set.UID, i))
}
