package noise

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
)

// killer kills containers, and is a kubelet that starts them again.
type killer struct {
	client *fake.Clientset
	killed []string
	lasts  int // disturbances that are not stopped
}

func (k *killer) Disturb(ctx context.Context, d cloud.Disturbance) (func(context.Context) error, error) {
	if d.Pod == nil || d.Pod.Action != cloud.ContainerKill || len(d.Selector.Labels) > 0 {
		return nil, errors.New("it is not a kill of one pod's containers")
	}
	k.killed = append(k.killed, d.Selector.Pod)
	k.lasts++
	time.AfterFunc(300*time.Millisecond, func() {
		pods := k.client.CoreV1().Pods(d.Selector.Namespace)
		if p, err := pods.Get(ctx, d.Selector.Pod, metav1.GetOptions{}); err == nil {
			p.Status.ContainerStatuses[0].RestartCount++
			_, _ = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		}
	})
	return func(context.Context) error { k.lasts--; return nil }, nil
}

// A cache or a worker is restarted once, and is back when that is told. One that a fault reaches, that is scaled, or
// that has two pods, is not, nor is anything else: not a service either that nobody is known to call.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a := &app.App{Namespace: "test-shop", Label: "app"}
		for name, kind := range map[string]string{
			"hot": "memcached", "warm": "memcached", "faulty": "memcached", "scaled": "memcached", "db": "mongodb",
			"twins": "memcached", "cart": "service", "broker": "infrastructure", "mailer": "service",
		} {
			s := app.Service{Name: name, Kind: kind, Worker: name == "mailer"}
			if name == "cart" {
				s.Calls = []string{"broker"}
			}
			a.Services = append(a.Services, s)
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name + "-1", Labels: map[string]string{"app": name}}}
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
			p.Status.ContainerStatuses = []v1.ContainerStatus{{RestartCount: 2}} // in the past
			if err := client.Tracker().Add(p); err != nil {
				t.Fatal(err)
			}
			if twin := p.DeepCopy(); name == "twins" {
				twin.Name = name + "-2"
				if err := client.Tracker().Add(twin); err != nil {
					t.Fatal(err)
				}
			}
		}
		k := &killer{client: client}
		l := &Life{
			Env: &fault.Env{Client: client, App: a, Chaos: k}, Level: Busy, Seed: 1, reached: []string{"faulty"},
			stirred: []string{"scaled"},
		}
		r := l.draw(7)
		for range 5 {
			l.restart(t.Context(), r)
			for i, c := range l.Changes() {
				name := k.killed[len(k.killed)-1]
				p, err := client.CoreV1().Pods(a.Namespace).Get(t.Context(), name, metav1.GetOptions{})
				if i > 0 || c.What != "restart" || c.Service+"-1" != name || err != nil || restarts(p) != 3 {
					t.Errorf("%+v was told of %s, %v, %v", c, name, p.Status.ContainerStatuses, err)
				}
			}
		}
		slices.Sort(k.killed)
		if !slices.Equal(k.killed, []string{"hot-1", "mailer-1", "warm-1"}) || k.lasts != 0 {
			t.Errorf("killed were %v; %d kills go on", k.killed, k.lasts)
		}
	})
}

// With busy, somebody's check fails now and then, once the agent has its turn. Nothing is left of it in the end, and
// where it is calm there is none.
func TestCheck(t *testing.T) {
	for _, level := range []Level{Calm, Busy} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			a := &app.App{Namespace: "test-shop", Label: "app", Frontend: app.Endpoint{Service: "frontend", Port: 80}}
			l := &Life{Env: &fault.Env{Client: client, App: a}, Level: level, Seed: 2}
			there := func() []v1.Pod {
				list, err := client.CoreV1().Pods(a.Namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return list.Items
			}
			if err := l.Go(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if pods := there(); len(pods) > 0 {
				t.Errorf("%s: before the hand-over there is %s", level, pods[0].Name)
			}
			l.HandOver()
			synctest.Wait()
			pods := there()
			if (len(pods) == 1) != (level == Busy) {
				t.Fatalf("%s: there are %d pods", level, len(pods))
			}
			time.Sleep(checkKept + time.Second)
			if left := there(); len(left) > 0 {
				t.Errorf("%s is still there", left[0].Name)
			}
			time.Sleep(2 * time.Minute) // Until there may be another.
			l.Stop(t.Context())
			if left := there(); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name)
			}
			if len(pods) == 1 {
				_, err := client.CoreV1().Pods(a.Namespace).Get(t.Context(), pods[0].Name, metav1.GetOptions{})
				if !apierrors.IsNotFound(err) || pods[0].Spec.RestartPolicy != v1.RestartPolicyNever {
					t.Errorf("%s: %v", pods[0].Name, err)
				}
			}
		})
	}
}

// gentle kills no containers.
type gentle struct{ *killer }

func (gentle) Refuses(d cloud.Disturbance) string {
	if d.Pod != nil {
		return "nobody is killed here"
	}
	return ""
}

// Caches are restarted only where containers can be killed.
func TestRestartIfItCanBe(t *testing.T) {
	for want, chaos := range map[int]cloud.Chaos{3: nil, 4: &killer{}} {
		if got := len((&Life{Env: &fault.Env{Chaos: chaos}, Level: Calm}).chores()); got != want {
			t.Errorf("%T: %d chores, want %d", chaos, got, want)
		}
	}
	if got := len((&Life{Env: &fault.Env{Chaos: gentle{}}, Level: Calm}).chores()); got != 3 {
		t.Errorf("%d chores where containers cannot be killed", got)
	}
}
