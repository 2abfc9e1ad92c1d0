package session

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
)

// identify finds out who answers for Services, and has those asked that are not served as they were
// when the application was well.
func (s *Stage) identify(ctx context.Context, services []v1.Service) ([]grade.Serving, error) {
	ns := s.app.Namespace
	slicesOf, err := s.client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := s.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byAddress := map[string]*v1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, ip := range p.Status.PodIPs {
			if p.Status.Phase == v1.PodRunning && !p.Spec.HostNetwork {
				byAddress[ip.IP] = p
			}
		}
	}
	var list []grade.Serving
	for _, service := range services {
		list = append(list, serving(&service, slicesOf.Items, byAddress))
	}
	slices.SortFunc(list, func(a, b grade.Serving) int { return cmp.Compare(a.Service, b.Service) })
	for i := range list {
		of, _ := s.app.Service(list[i].Service)
		list[i].Kind = of.Kind
	}
	if s.served != nil {
		s.question(ctx, list)
	}
	return list, nil
}

// serving tells who answers for a Service.
func serving(service *v1.Service, endpoints []discoveryv1.EndpointSlice, pods map[string]*v1.Pod) grade.Serving {
	l := grade.Serving{Service: service.Name}
	for _, p := range service.Spec.Ports {
		l.Ports = append(l.Ports, fmt.Sprintf("%d to %s", p.Port, p.TargetPort.String()))
	}
	add := func(s grade.Server) {
		if !slices.ContainsFunc(l.By, func(x grade.Server) bool { return reflect.DeepEqual(x, s) }) {
			l.By = append(l.By, s)
		}
	}
	if service.Spec.Type == v1.ServiceTypeExternalName {
		add(grade.Server{Address: service.Spec.ExternalName})
		return l
	}
	for _, slice := range endpoints {
		if slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, e := range slice.Endpoints {
			if !ptr.Deref(e.Conditions.Ready, true) {
				continue
			}
			for _, address := range e.Addresses {
				if pod := pods[address]; pod != nil {
					add(server(pod))
				} else {
					add(grade.Server{Address: address})
				}
			}
		}
	}
	slices.SortFunc(l.By, func(a, b grade.Server) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return l
}

// server is a pod as one who answers.
func server(pod *v1.Pod) grade.Server {
	s := grade.Server{Workload: "pod/" + pod.Name}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		name, kind := owner.Name, strings.ToLower(owner.Kind)
		if hash := pod.Labels["pod-template-hash"]; kind == "replicaset" && hash != "" &&
			strings.HasSuffix(name, "-"+hash) {
			name, kind = strings.TrimSuffix(name, "-"+hash), "deployment"
		}
		s.Workload = kind + "/" + name
	}
	for _, c := range pod.Spec.Containers {
		// The name of one image may be spelled with its registry, or without.
		p := grade.Program{Image: c.Image}
		if named, err := reference.ParseNormalizedNamed(c.Image); err == nil {
			p.Image = reference.FamiliarString(named)
		}
		if len(c.Command) > 0 {
			p.Command = c.Command[0]
		}
		s.Programs = append(s.Programs, p)
	}
	return s
}

// question asks the Services that are served by others than they were.
func (s *Stage) question(ctx context.Context, list []grade.Serving) {
	var g errgroup.Group
	for i := range list {
		j := slices.IndexFunc(s.served, func(x grade.Serving) bool { return x.Service == list[i].Service })
		if j < 0 || len(list[i].By) == 0 || reflect.DeepEqual(s.served[j], list[i]) {
			continue
		}
		g.Go(func() error {
			if err := fault.Ask(ctx, s.env, list[i].Service); err != nil {
				list[i].Wrong = err.Error()
			}
			return nil
		})
	}
	_ = g.Wait()
}
