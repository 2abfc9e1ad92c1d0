package cloud

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SuccessorLife is how long a pod that replaces a killed one runs before it is killed too. Without a pause a controller
// and who kills would race each other; with this one somebody who watches sees a pod that comes up and keeps dying.
const SuccessorLife = 2 * time.Second

// Kills is which pods [PodKill] kills when: all at once when it begins, and then whatever takes their place. The zero
// value has not begun.
type Kills struct {
	begun bool
	since map[types.UID]time.Time // when a successor was first seen running
}

// Due are those of the pods that are to be killed now, and again is when to look the next time for one that runs; 0 if
// there is none. While there is no effect, nobody is killed, and then it begins anew.
func (k *Kills) Due(pods []*v1.Pod, degree float64, now time.Time) (due []*v1.Pod, again time.Duration) {
	if degree == 0 {
		k.begun = false
		return nil, 0
	}
	since := map[types.UID]time.Time{}
	for _, p := range pods {
		if p.DeletionTimestamp != nil || k.begun && p.Status.Phase != v1.PodRunning {
			continue
		}
		if k.begun {
			first, known := k.since[p.UID]
			if !known {
				first = now
			}
			since[p.UID] = first
			if left := SuccessorLife - now.Sub(first); left > 0 {
				if again == 0 || left < again {
					again = left
				}
				continue
			}
		}
		due = append(due, p)
	}
	k.begun, k.since = true, since
	return due, again
}
