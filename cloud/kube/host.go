package kube

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/aiopslab/aiopslab/cloud"
)

var _ cloud.Host = (*Cloud)(nil)

// Missing implements [cloud.Host], by what was seen when the cluster was opened.
func (c *Cloud) Missing(f cloud.Facility) string {
	switch f {
	case cloud.Policies:
		return c.host.policies
	case cloud.Volumes:
		return c.host.volumes
	}
	return fmt.Sprintf("facility %d is not known", f)
}

// host is why a cluster does not let the lab have something; empty if it does.
type host struct{ policies, volumes string }

// look asks the cluster what it lets the lab have, and writes nothing.
func (c *Cloud) look(ctx context.Context) (h host) {
	h.policies = c.unenforced(ctx)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Resource: "persistentvolumes"},
	}}
	switch r, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review,
		metav1.CreateOptions{}); {
	case err != nil:
		h.volumes = fmt.Sprintf("whether you may patch persistentvolumes is not known: %v", err)
	case !r.Status.Allowed:
		h.volumes = "you may not patch persistentvolumes"
	}
	return h
}

// unenforced says why NetworkPolicies may have no effect, or "" if it is likely that they have. A network plug-in that
// enforces them is a DaemonSet.
func (c *Cloud) unenforced(ctx context.Context) string {
	sets, err := c.meta.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}).
		List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("whether this cluster enforces them is not known: %v", err)
	}
	for _, plugin := range plugins {
		for _, set := range sets.Items {
			switch {
			case !strings.Contains(set.Name, plugin.pod):
			case plugin.enforces:
				return ""
			default:
				return plugin.name + " does not enforce them, which is the network of this cluster"
			}
		}
	}
	return "this cluster has no DaemonSet of a network plug-in that the lab knows to enforce them"
}
