package session

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/grade"
)

// podMaker is what makes pods of the application, and how they are to be.
type podMaker struct {
	grade.Workload
	template v1.PodSpec
}

// Workloads lists an application's Deployments, StatefulSets and DaemonSets, as looks at it have them. Of Deployments
// and DaemonSets, only pods of the current template count as ready.
func Workloads(ctx context.Context, client kubernetes.Interface, a *app.App) (list []grade.Workload, err error) {
	makers, err := podMakers(ctx, client, a)
	for _, m := range makers {
		list = append(list, m.Workload)
	}
	return list, err
}

func (s *Stage) workloads(ctx context.Context) ([]podMaker, error) {
	return podMakers(ctx, s.client, s.app)
}

// podMakers lists what [Workloads] does.
func podMakers(ctx context.Context, client kubernetes.Interface, a *app.App) ([]podMaker, error) {
	apps, ns, all := client.AppsV1(), a.Namespace, metav1.ListOptions{}
	var list []podMaker
	add := func(kind string, meta metav1.ObjectMeta, template v1.PodSpec, observed int64, replicas, ready,
		current int32,
	) {
		w := grade.Workload{Kind: kind, Name: meta.Name, Replicas: int(replicas)}
		if of, ok := a.Service(meta.Name); ok {
			w.Elastic = of.Elastic
		}
		if observed >= meta.Generation {
			w.Ready = int(min(ready, current))
		}
		list = append(list, podMaker{w, template})
	}
	deployments, err := apps.Deployments(ns).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		add("deployment", d.ObjectMeta, d.Spec.Template.Spec, d.Status.ObservedGeneration,
			ptr.Deref(d.Spec.Replicas, 1), d.Status.ReadyReplicas, d.Status.UpdatedReplicas)
	}
	sets, err := apps.StatefulSets(ns).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, set := range sets.Items {
		// One that is updated by hand (OnDelete) keeps old pods on purpose, so all that are ready count.
		add("statefulset", set.ObjectMeta, set.Spec.Template.Spec, set.Status.ObservedGeneration,
			ptr.Deref(set.Spec.Replicas, 1), set.Status.ReadyReplicas, set.Status.ReadyReplicas)
	}
	daemons, err := apps.DaemonSets(ns).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, d := range daemons.Items {
		add("daemonset", d.ObjectMeta, d.Spec.Template.Spec, d.Status.ObservedGeneration,
			d.Status.DesiredNumberScheduled, d.Status.NumberReady, d.Status.UpdatedNumberScheduled)
	}
	return list, nil
}
