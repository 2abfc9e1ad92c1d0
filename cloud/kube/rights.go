package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is something that the lab does, in any namespace.
type right struct{ verbs, group, resource string } // verbs have commas between

// The rights without which no run works, and those that only some problems need.
var (
	neededRights = []right{
		{"get,list,create,patch,delete", "", "namespaces"},
		{"get,list,watch,create,patch,delete", "apps", "deployments"},
		{"list,create,patch,delete", "apps", "statefulsets"},
		{"get,list,watch,create,delete", "", "pods"},
		{"get,list,create,patch,delete", "", "services"},
		{"get,list,create,patch,delete", "", "configmaps"},
		{"get,list,create,patch,delete", "", "secrets"},
		{"get,list,create,patch,delete", "", "persistentvolumeclaims"},
		{"get", "", "pods/log"},
		{"create", "", "pods/exec"},
		{"create", "", "pods/portforward"},
		{"list,watch", "discovery.k8s.io", "endpointslices"},
		{"list", "", "events"},
		{"list", "", "nodes"},
		{"impersonate", "", "users"},
		{"impersonate", "", "groups"},
		{"create,bind,escalate,delete", "rbac.authorization.k8s.io", "clusterroles"},
		{"create,delete", "rbac.authorization.k8s.io", "clusterrolebindings"},
		{"create,delete", "rbac.authorization.k8s.io", "roles"},
		{"create,delete", "rbac.authorization.k8s.io", "rolebindings"},
	}
	usefulRights = []right{
		{"patch", "", "nodes"},
		{"get", "", "pods/proxy"},
		{"get,create,patch,delete", "", "persistentvolumes"},
		{"create,patch,delete", "networking.k8s.io", "networkpolicies"},
		{"create,patch,delete", "", "resourcequotas"},
		{"patch", "", "pods/ephemeralcontainers"},
		{"create,delete", "storage.k8s.io", "storageclasses"},
		{"get,patch", "rbac.authorization.k8s.io", "clusterroles"},
		{"create,delete", "scheduling.k8s.io", "priorityclasses"},
		{"create,delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations"},
	}
)

// rights looks whether the user of the kubeconfig may do what the lab does.
func (e *examination) rights(ctx context.Context) []Finding {
	missing, err := e.lacks(ctx, append(rightsToFind(), neededRights...))
	if err != nil {
		return []Finding{{
			"rights", Warning, fmt.Sprintf("what you may do is not known: %v", err),
			"Look at it with 'kubectl auth can-i --list'.",
		}}
	}
	if len(missing) > 0 {
		return []Finding{{
			"rights", Problem, "you may not " + shorten(missing),
			"Ask for the ClusterRole cluster-admin on a cluster for tests, or for a role with these.",
		}}
	}
	found := []Finding{{"rights", OK, "you may do all that a run needs", ""}}
	if missing, err = e.lacks(ctx, usefulRights); err == nil && len(missing) > 0 {
		found = append(found, Finding{
			"rights", Warning, "you may not " + shorten(missing) + ": some problems need it",
			"Ask for it if you want those.",
		})
	}
	return found
}

// rightsToFind are those to find what a run has in no namespace, of any kind, when it ends.
func rightsToFind() (all []right) {
	for _, k := range slices.Concat(kindsBefore, kindsAfter) {
		all = append(all, right{"list", k.Group, k.Resource})
	}
	return all
}

// asked is how many questions about rights are asked at once.
const asked = 16

// lacks returns those of the rights that the user does not have, as in "delete namespaces".
func (c *Cloud) lacks(ctx context.Context, rights []right) ([]string, error) {
	var all []string
	var group errgroup.Group
	group.SetLimit(asked)
	missing := make([][]string, len(rights))
	for i, r := range rights {
		group.Go(func() error {
			for _, verb := range strings.Split(r.verbs, ",") {
				may, err := c.may(ctx, verb, r)
				if err != nil {
					return err
				}
				if !may {
					missing[i] = append(missing[i], verb+" "+r.resource)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	for _, list := range missing {
		all = append(all, list...)
	}
	return all, err
}

func (c *Cloud) may(ctx context.Context, verb string, r right) (bool, error) {
	resource, sub, _ := strings.Cut(r.resource, "/")
	review, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: r.group, Resource: resource, Subresource: sub,
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
