package noise

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/record"
)

// killContainers is what is done to a cache or a worker.
var killContainers = &cloud.PodChaos{Action: cloud.ContainerKill}

// restart has the container of a cache or of a worker killed, once for each pod: the kubelet starts it again at once,
// and the pod tells of it for as long as it is there. Whoever asks a cache meanwhile looks into the database, and
// nobody waits for a worker. A second time there would be a back-off, and an alert of it. What a fault reaches, or is
// scaled, is left alone. So is a service with two pods or more: who is connected to the one that ends gets an error.
func (l *Life) restart(ctx context.Context, r *rand.Rand) {
	// What is begun is finished: the cache is back when it is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calmTimeout)
	defer cancel()
	services := l.Env.App.Services
	for _, i := range r.Perm(len(services)) {
		name := services[i].Name
		idle := services[i].Kind == "memcached" || services[i].Worker
		if !idle || slices.Contains(l.reached, name) || slices.Contains(l.stirred, name) {
			continue
		}
		pods, err := l.podsOf(ctx, name)
		if err != nil || len(pods) != 1 || slices.Contains(l.restarted, pods[0].Name) {
			continue
		}
		if _, ready := fault.ReadySince(&pods[0]); ready && l.kill(ctx, &pods[0]) == nil {
			l.restarted = append(l.restarted, pods[0].Name)
			l.note(record.Change{What: "restart", Service: name})
			return
		}
	}
}

// kill has the containers of a pod end once, and waits until they run again.
func (l *Life) kill(ctx context.Context, p *v1.Pod) error {
	before := restarts(p)
	end, err := l.Env.Chaos.Disturb(ctx, cloud.Disturbance{
		Selector: cloud.Selector{Namespace: p.Namespace, Pod: p.Name},
		Pod:      killContainers,
	})
	if err != nil {
		return err
	}
	if err := end(ctx); err != nil {
		return err
	}
	for {
		now, err := l.Env.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, ready := fault.ReadySince(now); ready && restarts(now) > before {
			return nil
		}
		if err := until(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// restarts is how often the containers of a pod were started again.
func restarts(p *v1.Pod) (n int32) {
	for _, s := range p.Status.ContainerStatuses {
		n += s.RestartCount
	}
	return n
}

// podsOf are the pods of a service that are not on their way out.
func (l *Life) podsOf(ctx context.Context, service string) ([]v1.Pod, error) {
	list, err := l.Env.Client.CoreV1().Pods(l.Env.App.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: l.Env.App.Label + "=" + service,
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p v1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}
