package chaos

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is an engine on a cluster of objects alone, in virtual time.
type lab struct {
	*Engine
	t       *testing.T
	client  *fake.Clientset
	network *vnet.Network

	mu   sync.Mutex
	pods map[string]map[string]cri.Effect // by node and pod UID: the only effect there
	sets int
}

// Disturb notes what is done on a node.
func (n labNode) Disturb(uid string, effects ...cri.Effect) {
	n.lab.mu.Lock()
	defer n.lab.mu.Unlock()
	n.lab.sets++
	delete(n.lab.pods[n.name], uid)
	if len(effects) > 0 {
		sum := effects[0]
		for _, e := range effects[1:] {
			sum.CPU, sum.Memory, sum.Hang = sum.CPU+e.CPU, sum.Memory+e.Memory, sum.Hang || e.Hang
		}
		n.lab.pods[n.name][uid] = sum
	}
}

type labNode struct {
	lab  *lab
	name string
}

// inLab runs f in a bubble, with an engine that follows the client's objects.
func inLab(t *testing.T, f func(t *testing.T, l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, client: fake.NewClientset(), pods: map[string]map[string]cri.Effect{"a": {}, "b": {}}}
		l.network = vnet.New(vnet.Config{Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		l.Engine = New(Config{
			Client: l.client, Network: l.network,
			Runtimes: func() []Runtime { return []Runtime{labNode{l, "a"}, labNode{l, "b"}} },
		})
		stop := l.watch()
		l.create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "geo"}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "geo"}}})
		l.pod("geo-1", "10.0.0.1", "a", "geo")
		l.pod("geo-2", "10.0.0.2", "b", "geo")
		l.pod("db-1", "10.0.0.3", "a", "db")
		f(t, l)
		l.Engine.Close()
		stop()
	})
}

func (l *lab) watch() (stop func()) {
	factory := informers.NewSharedInformerFactory(l.client, 0)
	if err := l.Watch(factory); err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return func() {
		cancel()
		factory.Shutdown()
	}
}

func (l *lab) create(s *v1.Service) {
	if _, err := l.client.CoreV1().Services("shop").Create(l.t.Context(), s, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
}

// pod creates a running pod.
func (l *lab) pod(name, ip, node, app string) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": app}},
		Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "main"}, {Name: "side"}}},
		Status:     v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: ip}}},
	}
	p, err := l.client.CoreV1().Pods("shop").Create(l.t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
	return p
}

func (l *lab) update(p *v1.Pod) {
	if _, err := l.client.CoreV1().Pods("shop").Update(l.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
}

func (l *lab) remove(name string) {
	if err := l.client.CoreV1().Pods("shop").Delete(l.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
}

func (l *lab) names() []string {
	list, err := l.client.CoreV1().Pods("shop").List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func (l *lab) disturb(d cloud.Disturbance) (stop func()) {
	l.t.Helper()
	end, err := l.Disturb(l.t.Context(), d)
	if err != nil {
		l.t.Fatal(err)
	}
	return func() {
		for range 2 { // It may be called more than once.
			if err := end(l.t.Context()); err != nil {
				l.t.Error(err)
			}
		}
	}
}

// effects returns what is done on all nodes alike.
func (l *lab) effects() map[string]cri.Effect {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(slices.Sorted(maps.Keys(l.pods["a"])), slices.Sorted(maps.Keys(l.pods["b"]))) {
		l.t.Errorf("the nodes differ: %v", l.pods)
	}
	return maps.Clone(l.pods["a"])
}

func (l *lab) disturbed(want ...string) {
	l.t.Helper()
	if got := slices.Sorted(maps.Keys(l.effects())); !slices.Equal(got, want) {
		l.t.Errorf("disturbed are %v, not %v", got, want)
	}
}

var (
	geo   = cloud.Selector{Namespace: "shop", Service: "geo"}
	hangs = &cloud.PodChaos{Action: cloud.PodFailure}
)

func TestSelectors(t *testing.T) {
	for _, c := range []struct {
		name string
		s    cloud.Selector
		want []string
	}{
		{"service", geo, []string{"uid-geo-1", "uid-geo-2"}},
		{"namespace", cloud.Selector{Namespace: "shop"}, []string{"uid-db-1", "uid-geo-1", "uid-geo-2"}},
		{"labels", cloud.Selector{Labels: map[string]string{"app": "db"}}, []string{"uid-db-1"}},
		{"pod", cloud.Selector{Namespace: "shop", Pod: "geo-2"}, []string{"uid-geo-2"}},
		{"node", cloud.Selector{Node: "a"}, []string{"uid-db-1", "uid-geo-1"}},
		{"service on a node", cloud.Selector{Namespace: "shop", Service: "geo", Node: "b"}, []string{"uid-geo-2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				stop := l.disturb(cloud.Disturbance{Selector: c.s, Pod: hangs})
				l.disturbed(c.want...)
				stop()
				l.disturbed()
			})
		})
	}
}

func TestNothingToDisturb(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "external"}})
		over := l.pod("job", "10.0.0.9", "a", "job")
		over.Status.Phase = v1.PodSucceeded
		l.update(over)
		for _, c := range []struct {
			d    cloud.Disturbance
			want string
		}{
			{cloud.Disturbance{Selector: cloud.Selector{Namespace: "shop", Service: "rate"}, Pod: hangs}, `selector: namespace shop has no service "rate"`},
			{cloud.Disturbance{Selector: cloud.Selector{Namespace: "shop", Service: "external"}, Pod: hangs}, "selector: service shop/external selects no pods; choose them by labels"},
			{cloud.Disturbance{Selector: cloud.Selector{Namespace: "empty"}, Pod: hangs}, "selector: no pod matches namespace empty"},
			{cloud.Disturbance{Selector: cloud.Selector{Namespace: "shop", Service: "geo", Node: "c"}, Pod: hangs}, "selector: no pod matches service geo, namespace shop, node c"},
			{cloud.Disturbance{Selector: cloud.Selector{Labels: map[string]string{"app": "job"}}, Pod: hangs}, "selector: no pod matches labels app=job"},
			{cloud.Disturbance{Selector: geo, Network: &cloud.NetworkChaos{Loss: 1, Target: &cloud.Selector{Node: "c"}}}, "network.target: no pod matches node c"},
			{cloud.Disturbance{Selector: geo, Pod: &cloud.PodChaos{Action: cloud.ContainerKill, Containers: []string{"geo"}}}, `pod.containers: "geo" is not one of main, side`},
			{cloud.Disturbance{Selector: geo}, "disturbance: kind: set exactly one"},
		} {
			if stop, err := l.Disturb(t.Context(), c.d); err == nil || stop != nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		}
		l.disturbed()
	})
}

func TestDisturbancesFollowPods(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		stop := l.disturb(cloud.Disturbance{Selector: geo, Pod: hangs})
		// One that is not on a node yet is disturbed before it can start.
		l.pod("geo-3", "", "", "geo")
		l.disturbed("uid-geo-1", "uid-geo-2", "uid-geo-3")
		// One that does not belong to the service any more is let go.
		p, _ := l.client.CoreV1().Pods("shop").Get(t.Context(), "geo-1", metav1.GetOptions{})
		p.Labels["app"] = "other"
		l.update(p)
		l.disturbed("uid-geo-2", "uid-geo-3")
		// What is being torn down is not restored on the way.
		before := l.sets
		l.remove("geo-2")
		if l.sets != before {
			t.Error("a pod that is gone was touched")
		}
		stop()
		l.disturbed()
	})
}

func TestDisturbancesOutliveTheirInformers(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		stop := l.disturb(cloud.Disturbance{Selector: geo, Pod: hangs})
		before := l.sets
		again := l.watch()
		defer again()
		synctest.Wait()
		if l.sets != before {
			t.Error("pods were touched meanwhile")
		}
		l.pod("geo-3", "", "", "geo")
		l.disturbed("uid-geo-1", "uid-geo-2", "uid-geo-3")
		stop()
	})
}

func TestDisturbancesAddUp(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		one := l.disturb(cloud.Disturbance{Selector: geo, Stress: &cloud.StressChaos{CPU: 1}})
		two := l.disturb(cloud.Disturbance{Selector: cloud.Selector{Node: "a"}, Stress: &cloud.StressChaos{CPU: 2, Memory: 5}})
		if got := l.effects()["uid-geo-1"]; got.CPU != 3 || got.Memory != 5 {
			t.Errorf("%+v", got)
		}
		one()
		if got := l.effects()["uid-geo-1"]; got.CPU != 2 || got.Memory != 5 {
			t.Errorf("%+v", got)
		}
		l.disturbed("uid-db-1", "uid-geo-1")
		two()
		l.disturbed()
	})
}

func TestStopAll(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		stop := l.disturb(cloud.Disturbance{Selector: geo, Pod: hangs})
		l.disturb(cloud.Disturbance{Selector: geo, Network: &cloud.NetworkChaos{Partition: true}})
		l.StopAll()
		l.disturbed()
		if l.active.Load() != 0 {
			t.Error("disturbances are left")
		}
		stop()
		l.disturb(cloud.Disturbance{Selector: geo, Pod: hangs})
		l.Close()
		l.disturbed()
		if _, err := l.Disturb(t.Context(), cloud.Disturbance{Selector: geo, Pod: hangs}); err == nil {
			t.Error("a closed engine disturbs")
		}
	})
}

func TestPeriodicEffect(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		defer l.disturb(cloud.Disturbance{Selector: geo, Pod: hangs, Schedule: cloud.Schedule{Every: time.Minute, For: 10 * time.Second}})()
		var on []int
		for s := range 130 {
			if len(l.effects()) > 0 {
				on = append(on, s)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		want := append(append(span(0, 10), span(60, 70)...), span(120, 130)...)
		if diff := cmp.Diff(want, on); diff != "" {
			t.Error(diff)
		}
	})
}

func span(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func TestGradualEffect(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		defer l.disturb(cloud.Disturbance{Selector: geo, Stress: &cloud.StressChaos{CPU: 2, Memory: 1000}, Schedule: cloud.Schedule{Ramp: 100 * time.Second}})()
		last := int64(0)
		for s := 0; s < 120; s += 10 {
			got := l.effects()["uid-geo-1"]
			if want := float64(min(s+2, 100)) / 50; got.CPU != want || got.Memory != int64(want*500) {
				t.Errorf("after %d s: %+v; want %v cores", s, got, want)
			}
			if got.Memory < last {
				t.Error("it shrinks")
			}
			last = got.Memory
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		// Once it has its full effect nothing happens any more.
		before := l.sets
		time.Sleep(time.Hour)
		if l.sets != before {
			t.Errorf("%d more steps", l.sets-before)
		}
	})
}

func TestDegree(t *testing.T) {
	for _, c := range []struct {
		name    string
		s       cloud.Schedule
		elapsed time.Duration
		degree  float64
		change  time.Duration
	}{
		{"constant", cloud.Schedule{}, time.Hour, 1, 0},
		{"the first step", cloud.Schedule{Ramp: 50 * time.Second}, 0, 0.02, time.Second},
		{"half way", cloud.Schedule{Ramp: 50 * time.Second}, 24500 * time.Millisecond, 0.5, 500 * time.Millisecond},
		{"the end", cloud.Schedule{Ramp: 50 * time.Second}, 50 * time.Second, 1, 0},
		{"a short one", cloud.Schedule{Ramp: 250 * time.Millisecond}, 210 * time.Millisecond, 1, 90 * time.Millisecond},
		{"on", cloud.Schedule{Every: time.Minute, For: 10 * time.Second}, 63 * time.Second, 1, 7 * time.Second},
		{"off", cloud.Schedule{Every: time.Minute, For: 10 * time.Second}, 70 * time.Second, 0, 50 * time.Second},
		{"growing by turns", cloud.Schedule{Every: 10 * time.Second, For: 5 * time.Second, Ramp: 100 * time.Second}, 41 * time.Second, 0.42, time.Second},
		{"growing unseen", cloud.Schedule{Every: 10 * time.Second, For: 5 * time.Second, Ramp: 100 * time.Second}, 46 * time.Second, 0, 4 * time.Second},
	} {
		if degree, change := degreeAt(c.s, c.elapsed); degree != c.degree || change != c.change {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, degree, change, c.degree, c.change)
		}
	}
}
