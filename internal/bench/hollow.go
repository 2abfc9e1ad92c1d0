package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

// A stock control plane needs nodes to be compared, and kubelets need root and a container runtime.
// Hollow nodes say of every pod at once that it is Ready, which makes the stock way look as good as
// it can.

const (
	leasePeriod   = 10 * time.Second
	leaseDuration = 40
	hollowWorkers = 4
	// A kubelet's client is limited to these.
	kubeletQPS, kubeletBurst = 50, 100
)

// runHollowNodes registers nodes and starts serving their pods until ctx ends.
func runHollowNodes(ctx context.Context, config *rest.Config) error {
	config.QPS, config.Burst = kubeletQPS, kubeletBurst
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for i := range clusterNodes {
		name := fmt.Sprintf("node-%d", i+1)
		if _, err := c.CoreV1().Nodes().Create(ctx, hollowNode(name), metav1.CreateOptions{}); err != nil {
			return err
		}
		go renewLease(ctx, c, name)
	}
	queue := workqueue.NewTyped[cache.ObjectName]()
	context.AfterFunc(ctx, queue.ShutDown)
	f := informers.NewSharedInformerFactoryWithOptions(c, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	pods := f.Core().V1().Pods()
	enqueue := func(obj any) {
		if p, ok := obj.(*v1.Pod); ok {
			queue.Add(cache.MetaObjectToName(p))
		}
	}
	if _, err := pods.Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }}); err != nil {
		return err
	}
	f.Start(ctx.Done())
	for range hollowWorkers {
		go func() {
			for {
				key, down := queue.Get()
				if down {
					return
				}
				if p, err := pods.Lister().Pods(key.Namespace).Get(key.Name); err == nil {
					hollowSync(ctx, c, p)
				}
				queue.Done(key)
			}
		}()
	}
	return nil
}

func hollowNode(name string) *v1.Node {
	capacity := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"),
		v1.ResourcePods: resource.MustParse("110"),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []v1.NodeCondition{
				{
					Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady",
					LastHeartbeatTime:  metav1.Now(),
					LastTransitionTime: metav1.Now(),
				},
			},
		},
	}
}

// renewLease is a node's heartbeat.
func renewLease(ctx context.Context, c kubernetes.Interface, node string) {
	leases := c.CoordinationV1().Leases(v1.NamespaceNodeLease)
	for {
		now := ptr.To(metav1.NowMicro())
		if l, err := leases.Get(ctx, node, metav1.GetOptions{}); err == nil {
			l.Spec.RenewTime = now
			_, _ = leases.Update(ctx, l, metav1.UpdateOptions{})
		} else {
			_, _ = leases.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: node},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity:       &node,
					LeaseDurationSeconds: ptr.To(int32(leaseDuration)), RenewTime: now,
				},
			}, metav1.CreateOptions{})
		}
		select {
		case <-time.After(leasePeriod):
		case <-ctx.Done():
			return
		}
	}
}

// hollowSync reports a pod as running, or as gone once it is deleted. The next event retries what
// failed.
func hollowSync(ctx context.Context, c kubernetes.Interface, p *v1.Pod) {
	switch {
	case p.DeletionTimestamp != nil:
		_ = c.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name,
			metav1.DeleteOptions{
				GracePeriodSeconds: ptr.To(int64(0)),
				Preconditions:      metav1.NewUIDPreconditions(string(p.UID)),
			})
	case p.Status.Phase != v1.PodRunning:
		p = p.DeepCopy()
		p.Status.Phase, p.Status.StartTime = v1.PodRunning, ptr.To(metav1.Now())
		p.Status.PodIP, p.Status.PodIPs = "10.244.0.2", []v1.PodIP{{IP: "10.244.0.2"}}
		for _, t := range []v1.PodConditionType{v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
			p.Status.Conditions = append(p.Status.Conditions,
				v1.PodCondition{Type: t, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()})
		}
		_, _ = c.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	}
}
