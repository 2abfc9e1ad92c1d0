package kube

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// stuckTime is how long a finalizer of what the lab has made may hold up its removal. By then whoever serves it has had
// time; an agent can add one that nobody serves, to be in the way of all runs that follow.
const stuckTime = time.Minute

// served are the finalizers that Kubernetes itself serves. To take them away would do harm, or leave something behind
// outside of the cluster.
var served = []string{
	metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents,
	"batch.kubernetes.io/job-tracking",
	"customresourcecleanup.apiextensions.k8s.io",
	"kubernetes.io/pv-protection",
	"kubernetes.io/pvc-protection",
	"resource.kubernetes.io/delete-protection",
	"service.kubernetes.io/load-balancer-cleanup",
}

// unfasten takes away the finalizers that hold up the removal of an object that the lab has made: its own and, if it is
// a namespace, those of what is in it. What cannot be taken away is found by who waits for the removal.
func (c *Cloud) unfasten(ctx context.Context, o object, m *metav1.PartialObjectMetadata) {
	c.strip(ctx, o.kind, m)
	if o.kind != namespaces {
		return
	}
	// What of it failed has no objects to be found.
	lists, _ := c.client.Discovery().ServerPreferredNamespacedResourcesWithContext(ctx)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "patch") {
				continue
			}
			kind := version.WithResource(r.Name)
			inside, err := c.meta.Resource(kind).Namespace(o.name).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, m := range inside.Items {
				c.strip(ctx, kind, &m)
			}
		}
	}
}

// strip takes away the finalizers of an object that is to go, but for those that are served.
func (c *Cloud) strip(ctx context.Context, kind schema.GroupVersionResource, m *metav1.PartialObjectMetadata) {
	keep := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return !slices.Contains(served, f) })
	if m.DeletionTimestamp == nil || len(keep) == len(m.Finalizers) {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": keep,
	}})
	if err == nil {
		_, _ = c.meta.Resource(kind).Namespace(m.Namespace).Patch(ctx, m.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
	}
}
