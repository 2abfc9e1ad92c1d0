package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/aiopslab/aiopslab/cloud"
)

// catchUp is how often the engine looks whether its informers have seen what the API has.
const catchUp = 5 * time.Millisecond

// view is the cluster as informers see it.
type view struct {
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	synced   []func() bool
}

func (v *view) complete() bool {
	for _, synced := range v.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// selected returns the pods a selector chooses which are not over.
func (v *view) selected(s cloud.Selector) []*v1.Pod {
	if v == nil {
		return nil
	}
	var service *v1.Service
	if s.Service != "" {
		var err error
		if service, err = v.services.Services(s.Namespace).Get(s.Service); err != nil {
			return nil
		}
	}
	list, err := v.pods.Pods(s.Namespace).List(labels.SelectorFromSet(s.Labels))
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(p *v1.Pod) bool { return !s.Chooses(p, service) })
	slices.SortFunc(list, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// exists reports whether the cluster still has a pod.
func (v *view) exists(p *v1.Pod) bool {
	now, err := v.pods.Pods(p.Namespace).Get(p.Name)
	return err == nil && now.UID == p.UID
}

// find asks the API whether a selector chooses any pod, and returns once the informers know what the
// API said.
func (e *Engine) find(ctx context.Context, field string, s cloud.Selector) error {
	for {
		service, pods, err := e.ask(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		if e.current().knows(service, pods) {
			return nil
		}
		select {
		case <-time.After(catchUp):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask finds the pods of a selector in the API. There is at least one.
func (e *Engine) ask(ctx context.Context, s cloud.Selector) (*v1.Service, []v1.Pod, error) {
	var service *v1.Service
	if s.Service != "" {
		var err error
		service, err = e.cfg.Client.CoreV1().Services(s.Namespace).Get(ctx, s.Service, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil, fmt.Errorf("namespace %s has no service %q", s.Namespace, s.Service)
		case err != nil:
			return nil, nil, err
		case len(service.Spec.Selector) == 0:
			return nil, nil, fmt.Errorf("service %s/%s selects no pods; choose them by labels", s.Namespace, s.Service)
		}
	}
	opts := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(s.Labels).String()}
	if s.Pod != "" {
		opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Pod).String()
	}
	list, err := e.cfg.Client.CoreV1().Pods(s.Namespace).List(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p v1.Pod) bool {
		return p.DeletionTimestamp != nil || !s.Chooses(&p, service)
	})
	if len(pods) == 0 {
		return nil, nil, errors.New("no pod matches " + s.String())
	}
	return service, pods, nil
}

// findContainers checks that there are the containers a disturbance names.
func (e *Engine) findContainers(d cloud.Disturbance) error {
	if d.Pod == nil {
		return nil
	}
	names := map[string]bool{}
	for _, p := range e.current().selected(d.Selector) {
		for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for _, c := range list {
				names[c.Name] = true
			}
		}
	}
	for _, name := range d.Pod.Containers {
		if !names[name] {
			return fmt.Errorf("pod.containers: %q is not one of %s", name,
				strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
	}
	return nil
}

// knows reports whether the view is at least as new as a service, if there is one, and pods.
func (v *view) knows(service *v1.Service, pods []v1.Pod) bool {
	if v == nil {
		return false
	}
	if service != nil {
		s, err := v.services.Services(service.Namespace).Get(service.Name)
		if err != nil || older(s, service) {
			return false
		}
	}
	for _, want := range pods {
		p, err := v.pods.Pods(want.Namespace).Get(want.Name)
		if err != nil || p.UID != want.UID || older(p, &want) {
			return false
		}
	}
	return true
}

func older(a, b metav1.Object) bool {
	x, err1 := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, err2 := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return err1 == nil && err2 == nil && x < y
}
