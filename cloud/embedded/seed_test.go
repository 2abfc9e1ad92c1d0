package embedded_test

import (
	"testing"

	"github.com/aiopslab/aiopslab/cloud"
)

// TestSeed: with one seed a cluster draws the same, also for the pod that took another's place.
func TestSeed(t *testing.T) {
	p := shared(t).victim(t)
	luck := func(seed uint64) string {
		t.Helper()
		pod := p.ready()
		p.exec(t, p.namespace, pod.Name, "sh", "-c", "echo x > /data/x")
		defer p.disturb(cloud.Disturbance{IO: &cloud.IOChaos{Path: "/data/x", Methods: []string{"open"}, Errno: "EIO", Percent: 50}})()
		p.Seed(seed)
		return p.exec(t, p.namespace, pod.Name, "sh", "-c",
			"for i in $(seq 60); do if cat /data/x >/dev/null 2>&1; then printf +; else printf -; fi; done")
	}
	one := luck(7)
	if got := luck(7); got != one {
		t.Errorf("with one seed:\n%s\n%s", one, got)
	}
	if got := luck(8); got == one {
		t.Errorf("with another seed it is the same: %s", got)
	}
	old := p.ready().UID
	stop := p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodKill}})
	stop()
	awaitTrue(t, "the pod is replaced", func() bool { return p.ready().UID != old })
	if got := luck(7); got != one {
		t.Errorf("with one seed, in its successor:\n%s\n%s", one, got)
	}
}
