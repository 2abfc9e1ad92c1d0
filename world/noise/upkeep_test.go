package noise

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cordoned are the nodes that take no new pods.
func (x *trial) cordoned(t *testing.T) (names []string) {
	t.Helper()
	list, err := x.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		if n.Spec.Unschedulable {
			names = append(names, n.Name)
		}
	}
	return names
}

func (x *trial) addNodes(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := x.client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Nodes are cordoned one at a time, for some seconds, and none is in the end, whenever that is.
func TestUpkeep(t *testing.T) {
	for _, end := range []time.Duration{3 * time.Second, 5 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Calm, 7)
			x.addNodes(t, "a", "b", "c")
			if err := x.life.Release(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := x.life.Go(t.Context()); err != nil {
				t.Fatal(err)
			}
			seen, seconds := map[string]bool{}, 0
			for range end / time.Second {
				time.Sleep(time.Second)
				now := x.cordoned(t)
				if len(now) > 1 {
					t.Errorf("cordoned are %v", now)
				}
				for _, n := range now {
					seen[n] = true
					seconds++
				}
			}
			x.life.Stop(t.Context())
			if now := x.cordoned(t); len(now) > 0 {
				t.Errorf("after %v, %v are left cordoned", end, now)
			}
			if minutes := int(end / time.Minute); minutes > 0 && (len(seen) < 2 || seconds < 15 || seconds > 90) {
				t.Errorf("%v were cordoned, for %d s in %d min", seen, seconds, minutes)
			}
		})
	}
}

// The only node is left alone, since there would be no place for new pods, and so are those of a cluster in which the
// lab is a guest.
func TestNoUpkeep(t *testing.T) {
	for guest, nodes := range map[bool][]string{false: {"a"}, true: {"a", "b", "c"}} {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Busy, 7)
			x.life.Env.Guest = guest
			x.addNodes(t, nodes...)
			if err := x.life.Go(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				time.Sleep(time.Second)
				if now := x.cordoned(t); len(now) > 0 {
					t.Fatalf("guest %v: cordoned are %v", guest, now)
				}
			}
			x.life.Stop(t.Context())
		})
	}
}
