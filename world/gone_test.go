package world_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/world"
)

// TestPlacesWereNeverEmpty holds that before a pod that is young there was another one, without a gap, as far back as
// telemetry tells or the workload was made, and that each belongs to a ReplicaSet that there was then.
func TestPlacesWereNeverEmpty(t *testing.T) {
	young, chained := 0, 0
	for seed := range uint64(20) {
		h := history(12)
		var cast past.Cast
		p := world.Past{Seed: seed, Now: now, Telling: func(c past.Cast) { cast = c }}
		if err := p.Write(h); err != nil {
			t.Fatal(err)
		}
		told := &past.Past{Cast: cast}
		for _, pod := range all[*v1.Pod](h) {
			until := pod.CreationTimestamp.Time
			list := told.GoneBefore(pod.Namespace, pod.Name)
			for _, g := range list {
				made, ok := cast.Sets[g.Namespace+"/"+g.Owner]
				switch {
				case until.Sub(g.To).Abs() > 2*time.Minute:
					t.Errorf("seed %d: %s was gone at %v, %s came at %v", seed, g.Pod, g.To, pod.Name, until)
				case !g.To.After(g.From):
					t.Errorf("seed %d: %s was there from %v to %v", seed, g.Pod, g.From, g.To)
				case g.Pod == pod.Name:
					t.Errorf("seed %d: %s was there before itself", seed, g.Pod)
				case !ok || made.After(g.From):
					t.Errorf("seed %d: %s is of %v, its ReplicaSet %s of %v", seed, g.Pod, g.From, g.Owner, made)
				}
				until = g.From
			}
			if age := now.Sub(pod.CreationTimestamp.Time); age < past.Window {
				young++
				if len(list) == 0 {
					t.Errorf("seed %d: there was nothing before %s, which is %v old", seed, pod.Name, age)
				}
			}
			if len(list) > 1 {
				chained++
			}
		}
		if len(cast.Sets) != len(all[*appsv1.ReplicaSet](h)) {
			t.Errorf("seed %d: %d ReplicaSets are told of", seed, len(cast.Sets))
		}
	}
	if young == 0 || chained == 0 {
		t.Errorf("%d pods are young, %d have had several predecessors", young, chained)
	}
}
