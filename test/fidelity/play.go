package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

const (
	glance = 100 * time.Millisecond
	// settled is for how long nothing may change before it counts: events are written behind, and what comes about
	// in one place shows in another later. Some things never settle.
	settled    = 3 * time.Second
	neverStill = 40 * time.Second
)

// player plays situations on a cluster.
type player struct {
	client kubernetes.Interface
	apply  *manifest.Client
}

func newPlayer(config *rest.Config) (*player, error) {
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	m, err := manifest.NewClient(config)
	return &player{client, m}, err
}

// play brings a situation about in a namespace of its own, and returns what can be seen of it.
func (p *player) play(ctx context.Context, s situation) (facts []string, err error) {
	ns := "fidelity-" + s.name
	defer func() {
		ctx := context.WithoutCancel(ctx)
		none := metav1.DeleteOptions{}
		_ = p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, ns, none)
		p.letGo(ctx, ns)
		_ = p.client.CoreV1().Namespaces().Delete(ctx, ns, none)
	}()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	objects, err := manifest.Parse([]byte(strings.ReplaceAll(s.manifest, "NAMESPACE", ns)))
	if err != nil {
		return nil, err
	}
	if err := p.apply.Apply(ctx, ns, nil); err != nil {
		return nil, err
	}
	// A pod is refused until the namespace has its account.
	err = wait.PollUntilContextCancel(ctx, glance, true, func(ctx context.Context) (bool, error) {
		_, err := p.client.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if err := p.apply.Apply(ctx, ns, objects); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, glance, true, func(ctx context.Context) (bool, error) {
		return p.reached(ctx, ns, s.until)
	})
	if s.until[0] == "evicted" && err == nil {
		facts = append(facts, p.evict(ctx, ns))
	}
	states, serr := p.still(context.WithoutCancel(ctx), ns, s.until)
	rest, rerr := p.others(context.WithoutCancel(ctx), ns)
	err = cmp.Or(err, serr, rerr)
	facts = append(append(facts, states...), rest...)
	for i := range facts {
		facts[i] = normal(facts[i], ns)
	}
	slices.Sort(facts)
	return slices.Compact(facts), err
}

// still waits until the pods stay as they are, while what was waited for is so, and tells of them.
func (p *player) still(ctx context.Context, ns string, until []string) (states []string, err error) {
	began, since := time.Now(), time.Now()
	for time.Since(since) < settled && time.Since(began) < neverStill {
		now, err := p.pods(ctx, ns)
		if err != nil {
			return now, err
		}
		if so, err := p.reached(ctx, ns, until); err != nil || !so || !slices.Equal(now, states) {
			states, since = now, time.Now()
		}
		time.Sleep(glance)
	}
	return states, nil
}

// letGo removes finalizers that nobody else does.
func (p *player) letGo(ctx context.Context, ns string) {
	pods, err := p.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range pods.Items {
		if len(pod.Finalizers) > 0 {
			pod.Finalizers = nil
			_, _ = p.client.CoreV1().Pods(ns).Update(ctx, &pod, metav1.UpdateOptions{})
		}
	}
}

// reached reports whether a situation has come about.
func (p *player) reached(ctx context.Context, ns string, until []string) (bool, error) {
	all := metav1.ListOptions{}
	pods, err := p.client.CoreV1().Pods(ns).List(ctx, all)
	if err != nil {
		return false, err
	}
	any := func(is func(v1.ContainerStatus) bool) bool {
		return slices.ContainsFunc(pods.Items, func(pod v1.Pod) bool {
			return slices.ContainsFunc(append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...), is)
		})
	}
	switch until[0] {
	case "waiting":
		return any(func(c v1.ContainerStatus) bool {
			return c.State.Waiting != nil && c.State.Waiting.Reason == until[1]
		}), nil
	case "init":
		return any(func(c v1.ContainerStatus) bool { return c.Name == "prepare" && c.State.Running != nil }), nil
	case "phase":
		is := func(pod v1.Pod) bool { return string(pod.Status.Phase) == until[1] }
		return slices.ContainsFunc(pods.Items, is), nil
	case "event":
		events, err := p.client.CoreV1().Events(ns).List(ctx, all)
		is := func(e v1.Event) bool { return e.Reason == until[1] }
		return err == nil && slices.ContainsFunc(events.Items, is), err
	case "deployment":
		list, err := p.client.AppsV1().Deployments(ns).List(ctx, all)
		return err == nil && slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
			is := func(c appsv1.DeploymentCondition) bool { return c.Reason == until[1] }
			return slices.ContainsFunc(d.Status.Conditions, is)
		}), err
	case "job":
		list, err := p.client.BatchV1().Jobs(ns).List(ctx, all)
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		for _, c := range list.Items[0].Status.Conditions {
			if c.Type == "Failed" && c.Reason == until[1] {
				return true, nil
			}
		}
		return false, nil
	case "evicted":
		d, err := p.client.AppsV1().Deployments(ns).Get(ctx, "d", metav1.GetOptions{})
		if err != nil || d.Status.AvailableReplicas == 0 {
			return false, err
		}
		b, err := p.client.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, "all", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 1, err
	case "deleting":
		return p.deleting(ctx, pods.Items)
	}
	return true, nil
}

// deleting deletes a pod when it runs, and reports whether all that can be done about that is done.
func (p *player) deleting(ctx context.Context, pods []v1.Pod) (bool, error) {
	if len(pods) == 0 || pods[0].Status.Phase == v1.PodPending {
		return false, nil
	}
	pod := pods[0]
	if pod.DeletionTimestamp == nil {
		err := p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
		return false, err
	}
	return pod.Status.ContainerStatuses[0].State.Terminated != nil, nil
}

// evict evicts a pod, and tells what came of it.
func (p *player) evict(ctx context.Context, ns string) string {
	pods, err := p.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		return fmt.Sprintf("nobody to evict: %v", err)
	}
	err = p.client.PolicyV1().Evictions(ns).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: ns},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)},
	})
	if status, ok := err.(apierrors.APIStatus); ok {
		s := status.Status()
		return fmt.Sprintf("eviction: %d %s: %s %+v", s.Code, s.Reason, s.Message, *s.Details)
	}
	return fmt.Sprintf("eviction: %v", err)
}
