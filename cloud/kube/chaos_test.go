package kube

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/cloud"
)

var (
	ofGeo = cloud.Selector{Namespace: "shop", Labels: map[string]string{"app": "geo"}}
	lossy = cloud.Disturbance{Selector: ofGeo, Network: &cloud.NetworkChaos{Loss: 0.5}}
)

// disturb starts a disturbance, which must succeed.
func disturb(t *testing.T, c *Cloud, d cloud.Disturbance) (stop func(context.Context) error) {
	t.Helper()
	stop, err := c.Disturb(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// Each pod that matches has one object, also those that come later; what is gone has none, and others are left alone.
func TestDisturbFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		pending := pod("shop", "geo-0", "geo")
		pending.Status.Phase = "Pending"
		k.add(t, shopPods, pod("shop", "geo-1", "geo"), pod("shop", "geo-2", "geo"), pod("shop", "web-1", "web"), pending)
		k.add(t, otherPods, pod("other", "geo-9", "geo"))
		effect := func(pods ...string) (all []string) {
			for _, p := range pods {
				all = append(all, p+" loss 50")
			}
			return all
		}
		d := lossy
		d.Selector.Namespace = "" // All of the run's.
		stop := disturb(t, c, d)
		if diff := cmp.Diff(effect("geo-1", "geo-2"), k.done()); diff != "" {
			t.Errorf("when it returns (-want +got):\n%s", diff)
		}
		k.look(func() {
			for at, o := range k.objects {
				if strings.HasPrefix(at, meshPath) && o.GetLabels()[RunLabel] != "r1" {
					t.Errorf("%s is not labelled: %v", at, o.GetLabels())
				}
			}
		})
		k.drop(shopPods + "/geo-1")
		k.add(t, shopPods, pod("shop", "geo-3", "geo"))
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff(effect("geo-2", "geo-3"), k.done()); diff != "" {
			t.Errorf("later (-want +got):\n%s", diff)
		}
		for range 2 {
			if err := stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if left := slices.DeleteFunc(k.paths(), func(at string) bool { return !strings.HasPrefix(at, meshPath) }); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		time.Sleep(time.Minute)
		if all := k.done(); len(all) > 0 {
			t.Errorf("it goes on: %v", all)
		}
	})
}

// It grows in steps, of which there is one at a time, and stays.
func TestDisturbGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		k.add(t, shopPods, pod("shop", "geo-1", "geo"))
		d := lossy
		d.Schedule.Ramp = 20 * time.Second
		stop := disturb(t, c, d)
		var seen []string
		for range 60 {
			if all := k.done(); len(all) > 0 && !slices.Contains(seen, all[0]) {
				seen = append(seen, all[0])
			}
			time.Sleep(pollTime)
		}
		var want []string
		for _, loss := range []string{"12.5", "25", "37.5", "50"} {
			want = append(want, "geo-1 loss "+loss)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		if n := k.atOnce("geo-1"); n != 1 {
			t.Errorf("there were %d at a time", n)
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDisturbComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		k.add(t, shopPods, pod("shop", "geo-1", "geo"))
		d := lossy
		d.Schedule = cloud.Schedule{Every: time.Minute, For: 20 * time.Second}
		stop := disturb(t, c, d)
		for i, wait := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 20 * time.Second} {
			time.Sleep(wait)
			if got := len(k.done()); got != (i+1)%2 {
				t.Errorf("look %d: %d effects", i, got)
			}
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A container that is killed is killed again when it runs again; one that was not named is not killed.
func TestContainerKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		p := pod("shop", "geo-1", "geo")
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, pod("shop", "geo-1", "proxy").Status.ContainerStatuses...)
		k.add(t, shopPods, p)
		stop := disturb(t, c, cloud.Disturbance{
			Selector: ofGeo, Pod: &cloud.PodChaos{Action: cloud.ContainerKill, Containers: []string{"geo"}},
		})
		time.Sleep(time.Minute) // It is down.
		if got := k.killed(); !slices.Equal(got, []string{"geo-1/geo"}) {
			t.Errorf("killed: %v", got)
		}
		k.restart("geo-1", "geo", "c2-geo-1")
		time.Sleep(5 * time.Second)
		if got := k.killed(); !slices.Equal(got, []string{"geo-1/geo", "geo-1/geo"}) {
			t.Errorf("killed: %v", got)
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
		k.restart("geo-1", "geo", "c3-geo-1")
		time.Sleep(time.Minute)
		if got := k.killed(); len(got) != 2 {
			t.Errorf("killed after the end: %v", got)
		}
	})
}

// What runs in a container ends with it, so who starts again is disturbed again.
func TestStressFollowsContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		k.add(t, shopPods, pod("shop", "geo-1", "geo"))
		stop := disturb(t, c, cloud.Disturbance{Selector: ofGeo, Stress: &cloud.StressChaos{Memory: 1 << 30}})
		made := func() (n int) {
			k.look(func() {
				for _, w := range k.writes {
					if strings.HasPrefix(w, "POST "+meshPath+stressChaos) {
						n++
					}
				}
			})
			return n
		}
		time.Sleep(time.Minute)
		if made() != 1 {
			t.Errorf("it was made %d times", made())
		}
		k.restart("geo-1", "geo", "c2-geo-1")
		time.Sleep(5 * time.Second)
		if made() != 2 || len(k.done()) != 1 {
			t.Errorf("it was made %d times, and there is %v", made(), k.done())
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The pods that traffic is disturbed with are followed, too.
func TestTargetFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		k.add(t, shopPods, pod("shop", "geo-1", "geo"), pod("shop", "web-1", "web"))
		d := cloud.Disturbance{Selector: ofGeo, Network: &cloud.NetworkChaos{
			Delay: time.Second, Direction: cloud.Both, Target: &cloud.Selector{Namespace: "shop", Labels: map[string]string{"app": "web"}},
		}}
		stop := disturb(t, c, d)
		with := func() (names any) {
			k.look(func() {
				for at, o := range k.objects {
					if strings.HasPrefix(at, meshPath) {
						target := o.Object["spec"].(map[string]any)["target"].(map[string]any)
						names = target["selector"].(map[string]any)["pods"].(map[string]any)["shop"]
					}
				}
			})
			return names
		}
		if diff := cmp.Diff([]any{"web-1"}, with()); diff != "" {
			t.Error(diff)
		}
		k.add(t, shopPods, pod("shop", "web-2", "web"))
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff([]any{"web-1", "web-2"}, with()); diff != "" || k.atOnce("geo-1") != 1 {
			t.Error(diff)
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Who asks for what cannot be is told why, in a line, and nothing is left.
func TestDisturbFails(t *testing.T) {
	far := lossy
	far.Network = &cloud.NetworkChaos{Loss: 1, Target: &cloud.Selector{Namespace: "other"}}
	nobody := lossy
	nobody.Selector.Labels = map[string]string{"app": "nobody"}
	elsewhere := lossy
	elsewhere.Selector.Namespace = "other"
	noService := lossy
	noService.Selector = cloud.Selector{Namespace: "shop", Service: "nobody"}
	for name, tt := range map[string]struct {
		d      cloud.Disturbance
		change func(k *controller, c *Cloud)
		want   string
	}{
		"nobody matches":    {nobody, nil, "no pod matches labels app=nobody, namespace shop"},
		"no service":        {noService, nil, "no pod matches service nobody"},
		"pods of others":    {elsewhere, nil, "namespace other is not the run's"},
		"traffic of others": {far, nil, "namespace other is not the run's"},
		"invalid":           {cloud.Disturbance{Selector: ofGeo}, nil, "set exactly one of"},
		"no run":            {lossy, func(_ *controller, c *Cloud) { c.run = "" }, "only in namespaces that a run has claimed"},
		"no Chaos Mesh":     {lossy, func(_ *controller, c *Cloud) { c.mesh = mesh{} }, "it takes Chaos Mesh to disturb the network of pods"},
		"it fails":          {lossy, func(k *controller, _ *Cloud) { k.fails = "no ipset:\n modprobe failed" }, "what Chaos Mesh was asked for fails: no ipset: modprobe failed"},
		"it chooses nobody": {lossy, func(k *controller, _ *Cloud) { k.blind = "no pod is selected" }, "it has no effect after 1m0s: Chaos Mesh says: no pod is selected"},
		"nobody runs": {lossy, func(k *controller, _ *Cloud) {
			k.objects[shopPods+"/geo-1"].Object["status"].(map[string]any)["phase"] = "Pending"
		}, "it has no effect after 1m0s: no pod that matches runs"},
		"no volume": {
			cloud.Disturbance{Selector: ofGeo, IO: &cloud.IOChaos{Path: "/etc", Errno: "EIO"}},
			nil,
			"/etc of pod geo-1 is on no volume",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, c := withMesh(t)
				k.add(t, shopPods, pod("shop", "geo-1", "geo"))
				if tt.change != nil {
					tt.change(k, c)
				}
				_, err := c.Disturb(t.Context(), tt.d)
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
				for _, at := range k.paths() {
					if strings.HasPrefix(at, meshPath) {
						t.Errorf("left behind: %s", at)
					}
				}
			})
		})
	}
}

// What cannot be undone is named, and can be tried again.
func TestStopFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		k.add(t, shopPods, pod("shop", "geo-1", "geo"))
		stop := disturb(t, c, lossy)
		k.look(func() { k.stuck = "yes" })
		if err := stop(t.Context()); err == nil || !strings.Contains(err.Error(), "has not let go of d") {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("nobody waits")
		cancel(gone)
		if err := stop(ctx); err == nil {
			t.Error("it is done")
		}
		k.look(func() { k.stuck = "" })
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A cloud that is closed follows no pods, but leaves what is there to who removes the run.
func TestCloseEndsFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		k.add(t, shopPods, pod("shop", "geo-1", "geo"))
		disturb(t, c, lossy)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if len(k.done()) != 1 {
			t.Errorf("%v", k.done())
		}
	})
}

// To kill pods takes no Chaos Mesh. A successor lives for a moment.
func TestPodKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := withMesh(t)
		c.mesh = mesh{}
		k.add(t, shopPods, pod("shop", "geo-1", "geo"), pod("shop", "web-1", "web"))
		k.add(t, otherPods, pod("other", "geo-9", "geo"))
		kill := cloud.Disturbance{Selector: ofGeo, Pod: &cloud.PodChaos{Action: cloud.PodKill}}
		stop := disturb(t, c, kill)
		if k.has(shopPods + "/geo-1") {
			t.Error("it lives")
		}
		k.add(t, shopPods, pod("shop", "geo-2", "geo"))
		time.Sleep(lookTime + time.Millisecond)
		if !k.has(shopPods + "/geo-2") {
			t.Error("a successor is killed at once")
		}
		time.Sleep(2 * cloud.SuccessorLife)
		if k.has(shopPods + "/geo-2") {
			t.Error("a successor lives")
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
		k.add(t, shopPods, pod("shop", "geo-3", "geo"))
		time.Sleep(time.Minute)
		if !k.has(shopPods+"/geo-3") || !k.has(shopPods+"/web-1") || !k.has(otherPods+"/geo-9") {
			t.Errorf("left: %v", k.paths())
		}
	})
}

func TestRefuses(t *testing.T) {
	all := mesh{resources: []string{podChaos, networkChaos, stressChaos, ioChaos, meshSecond}}
	target := &cloud.Selector{Namespace: "shop"}
	for name, tt := range map[string]struct {
		m    mesh
		d    cloud.Disturbance
		want string
	}{
		"a kill":             {mesh{}, cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodKill}}, ""},
		"no Chaos Mesh":      {mesh{}, cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.ContainerKill}}, "to kill containers, and this cluster does not have it"},
		"not known":          {mesh{err: errors.New("forbidden")}, cloud.Disturbance{Stress: &cloud.StressChaos{CPU: 1}}, "is not known: forbidden"},
		"no controller":      {mesh{resources: all.resources, idle: true}, lossy, "and its controller does not run"},
		"the first version":  {mesh{resources: []string{networkChaos}}, lossy, "it takes Chaos Mesh 2"},
		"the network":        {all, lossy, ""},
		"what they receive":  {all, cloud.Disturbance{Network: &cloud.NetworkChaos{Loss: 1, Direction: cloud.From}}, "only if it comes from pods that are named"},
		"from a target":      {all, cloud.Disturbance{Network: &cloud.NetworkChaos{Loss: 1, Direction: cloud.From, Target: target}}, ""},
		"a partition":        {all, cloud.Disturbance{Network: &cloud.NetworkChaos{Partition: true, Direction: cloud.Both}}, ""},
		"pods that fail":     {all, cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodFailure}}, ""},
		"files of a volume":  {all, cloud.Disturbance{IO: &cloud.IOChaos{Path: "/data", Errno: "EIO"}}, ""},
		"all files":          {all, cloud.Disturbance{IO: &cloud.IOChaos{Path: "/", Errno: "EIO"}}, "the files of volumes only"},
		"calls":              {all, cloud.Disturbance{Kernel: &cloud.KernelChaos{Call: "connect", Errno: "EIO"}}, "calls into the kernel"},
		"calls, and no mesh": {mesh{}, cloud.Disturbance{Kernel: &cloud.KernelChaos{Call: "connect", Errno: "EIO"}}, "calls into the kernel"},
	} {
		c := &Cloud{mesh: tt.m}
		if got := c.Refuses(tt.d); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What is asked of Chaos Mesh for each disturbance.
func TestCharms(t *testing.T) {
	geo := map[string]any{"namespaces": []any{"shop"}, "pods": map[string]any{"shop": []any{"geo-1"}}}
	spec := func(more map[string]any) map[string]any {
		more["mode"], more["selector"] = "all", geo
		return more
	}
	one := []any{"geo"}
	type object = map[string]any
	for name, tt := range map[string]struct {
		d      cloud.Disturbance
		degree float64
		want   []map[string]any
	}{
		"a failure": {cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodFailure}}, 1, []object{spec(object{"action": "pod-failure"})}},
		"a kill":    {cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.ContainerKill}}, 1, []object{spec(object{"action": "container-kill", "containerNames": one})}},
		"a delay": {cloud.Disturbance{Network: &cloud.NetworkChaos{Delay: 2 * time.Second, Jitter: 500 * time.Millisecond}}, 0.5, []object{
			spec(object{"action": "delay", "direction": "to", "delay": object{"latency": "1s", "jitter": "250ms", "correlation": "0"}}),
		}},
		"a little loss": {cloud.Disturbance{Network: &cloud.NetworkChaos{Loss: 0.07}}, 1, []object{
			spec(object{"action": "loss", "direction": "to", "loss": object{"loss": "7", "correlation": "0"}}),
		}},
		"several at once, and a limit": {cloud.Disturbance{Network: &cloud.NetworkChaos{Duplicate: 1, Corrupt: 0.25, Bandwidth: 1000}}, 1, []object{
			spec(object{
				"action": "netem", "direction": "to", "duplicate": object{"duplicate": "100", "correlation": "0"},
				"corrupt": object{"corrupt": "25", "correlation": "0"},
			}),
			spec(object{"action": "bandwidth", "direction": "to", "bandwidth": object{"rate": "1000bps", "limit": int64(1 << 20), "buffer": int64(4096)}}),
		}},
		"a partition": {cloud.Disturbance{Network: &cloud.NetworkChaos{Partition: true, Loss: 1, Direction: cloud.Both}}, 0.1, []object{
			spec(object{"action": "partition", "direction": "both"}),
		}},
		"cores": {cloud.Disturbance{Stress: &cloud.StressChaos{CPU: 2.5}}, 1, []object{
			spec(object{"containerNames": one, "stressors": object{"cpu": object{"workers": int64(3), "load": int64(83)}}}),
		}},
		"half of a core, and memory": {cloud.Disturbance{Stress: &cloud.StressChaos{CPU: 1, Memory: 1 << 20}}, 0.5, []object{
			spec(object{"containerNames": one, "stressors": object{
				"cpu": object{"workers": int64(1), "load": int64(50)}, "memory": object{"workers": int64(1), "size": "524288B"},
			}}),
		}},
		"a volume": {cloud.Disturbance{IO: &cloud.IOChaos{Path: "/data/db", Methods: []string{"write", "fsync"}, Errno: "EIO"}}, 1, []object{
			spec(object{"action": "fault", "containerNames": one, "volumePath": "/data/db", "errno": int64(5), "percent": int64(100), "methods": []any{"write", "fsync"}}),
		}},
		"part of a volume": {cloud.Disturbance{IO: &cloud.IOChaos{Path: "/data/logs/", Errno: "ENOSPC", Latency: time.Second, Percent: 50}}, 0.5, []object{
			spec(object{"action": "fault", "containerNames": one, "volumePath": "/data", "path": "/data/logs/**/*", "errno": int64(28), "percent": int64(25)}),
			spec(object{"action": "latency", "containerNames": one, "volumePath": "/data", "path": "/data/logs/**/*", "delay": "500ms", "percent": int64(25)}),
		}},
	} {
		list, err := charms(tt.d, pod("shop", "geo-1", "geo"), tt.degree, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []map[string]any
		for _, c := range list {
			got = append(got, c.body)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCharmsRefused(t *testing.T) {
	host := pod("shop", "geo-1", "geo")
	host.Spec.HostNetwork = true
	two := pod("shop", "geo-1", "geo")
	two.Spec.Containers = append(two.Spec.Containers, pod("shop", "geo-1", "proxy").Spec.Containers...)
	if _, err := charms(lossy, host, 1, nil); err == nil || !strings.Contains(err.Error(), "the network of its node") {
		t.Error(err)
	}
	io := cloud.Disturbance{IO: &cloud.IOChaos{Path: "/data/db/x", Errno: "EIO"}}
	if _, err := charms(io, two, 1, nil); err == nil || !strings.Contains(err.Error(), "of geo and of proxy in pod geo-1") {
		t.Error(err)
	}
}

// Pods run on Linux, whose numbers they are.
func TestErrnos(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this machine has other numbers")
	}
	d := cloud.Disturbance{Selector: ofGeo, IO: &cloud.IOChaos{Path: "/x", Errno: "?"}}
	_, names, _ := strings.Cut(d.Validate().Error(), "is not one of ")
	for name := range strings.SplitSeq(names, ", ") {
		if want, ok := cloud.Errno(name); !ok || linuxErrnos[name] != int64(want) {
			t.Errorf("%s is %d, and here %d", name, linuxErrnos[name], int64(want))
		}
	}
}
