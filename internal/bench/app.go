package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	appNamespace = "shop"
	appReplicas  = 30
	appPoll      = 20 * time.Millisecond
	appPatience  = 5 * time.Minute
)

// application is a Deployment of web servers. Its pods are killed without grace, so that removing it
// takes no part in what is measured.
func application(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To(int64(0)),
					Containers: []v1.Container{
						{Name: "web", Image: "nginx:1.29", Ports: []v1.ContainerPort{{ContainerPort: 80}}},
					},
				},
			},
		},
	}
}

// makeNamespace creates a namespace and waits until pods can be created in it.
func makeNamespace(ctx context.Context, c kubernetes.Interface, name string) error {
	if _, err := c.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, "the namespace's service account", func() bool { return namespaceUsable(ctx, c, name) })
}

// deploy creates a Deployment and waits, by a watch, until all its pods are Ready. It returns how
// long that took.
func deploy(ctx context.Context, c kubernetes.Interface, ns string, d *appsv1.Deployment) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, appPatience, errors.New("it takes too long"))
	defer cancel()
	pods := func() (watch.Interface, error) {
		return c.CoreV1().Pods(ns).Watch(ctx,
			metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	}
	w, err := pods()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := c.AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		w.Stop()
		return 0, err
	}
	ready := map[string]bool{}
	for {
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*v1.Pod); ok && podReady(p) {
				ready[p.Name] = true
			}
			if len(ready) == int(*d.Spec.Replicas) {
				w.Stop()
				return time.Since(start), nil
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%d of %d pods of %s are Ready: %w", len(ready), *d.Spec.Replicas, d.Name,
				context.Cause(ctx))
		}
		// A server under pressure ends watches; a new one begins with what there is.
		if w, err = pods(); err != nil {
			return 0, fmt.Errorf("%d of %d pods of %s are Ready: %w", len(ready), *d.Spec.Replicas, d.Name, err)
		}
	}
}

func podReady(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// readyPods counts the pods of a namespace that are Ready.
func readyPods(ctx context.Context, c kubernetes.Interface, ns string) (int, error) {
	pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range pods.Items {
		if podReady(&pods.Items[i]) {
			n++
		}
	}
	return n, nil
}

// remove deletes a Deployment and waits until its namespace has no pods.
func remove(ctx context.Context, c kubernetes.Interface, ns, name string) error {
	if err := c.AppsV1().Deployments(ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until(ctx, "the end of the pods", func() bool {
		pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}

// until polls for a condition.
func until(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, appPatience, errors.New("it takes too long"))
	defer cancel()
	for !condition() {
		select {
		case <-time.After(appPoll):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}
