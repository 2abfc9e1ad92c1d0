package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

const (
	// rightsTimeout is how long the API server may take to learn of a binding.
	rightsTimeout = 30 * time.Second
	rightsPoll    = 10 * time.Millisecond
)

// within are the rights in a namespace that is the agent's: everything but what leads out of it. The namespace itself
// and its labels, which say what pods may do on their nodes, are not the agent's, and no role can be made that has
// more rights than these. Custom are the application's own kinds, and no others of their groups: an operator of
// somebody else's may act on those.
func within(custom []schema.GroupResource) []rbacv1.PolicyRule {
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Verbs: verbs, Resources: []string{
			"pods", "pods/attach", "pods/binding", "pods/ephemeralcontainers", "pods/eviction", "pods/exec", "pods/log",
			"pods/portforward", "pods/proxy", "pods/resize", "pods/status", "services", "services/proxy",
			"services/status", "configmaps", "secrets", "serviceaccounts", "serviceaccounts/token", "endpoints",
			"events", "limitranges", "resourcequotas", "resourcequotas/status", "persistentvolumeclaims",
			"persistentvolumeclaims/status", "podtemplates", "replicationcontrollers", "replicationcontrollers/scale",
			"replicationcontrollers/status",
		}},
		{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"namespaces"}},
		{Resources: []string{"*"}, Verbs: verbs, APIGroups: []string{
			"apps", "autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
			"metrics.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
		}},
	}
	for _, c := range custom {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{c.Group}, Verbs: verbs, Resources: []string{
			c.Resource, c.Resource + "/status", c.Resource + "/scale", c.Resource + "/finalizers",
		}})
	}
	return rules
}

// around are the rights outside of the agent's namespaces: to read what all of a cluster has in common, and to change
// whose some volumes are, see [exchange.ofRun].
func around(volumes []string) []rbacv1.PolicyRule {
	verbs := []string{"get", "list", "watch"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Verbs: verbs, Resources: []string{"namespaces", "nodes", "persistentvolumes"}},
		{APIGroups: []string{"metrics.k8s.io"}, Verbs: verbs, Resources: []string{"nodes"}},
		{APIGroups: []string{"storage.k8s.io"}, Verbs: verbs, Resources: []string{"storageclasses"}},
		{APIGroups: []string{"scheduling.k8s.io"}, Verbs: verbs, Resources: []string{"priorityclasses"}},
	}
	if len(volumes) > 0 {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Verbs: []string{"update", "patch"}, Resources: []string{"persistentvolumes"},
			ResourceNames: volumes,
		})
	}
	return rules
}

// prepare gives the agent's groups their rights, and returns the lab's own name.
func (g *Guard) prepare(ctx context.Context) (user string, err error) {
	rbac, err := rbacclient.NewForConfig(g.opts.Upstream)
	if err != nil {
		return "", err
	}
	for _, group := range g.opts.Groups {
		give := g.giveAll
		if len(g.opts.Namespaces) > 0 {
			give = g.giveSome
		}
		if err := give(ctx, rbac, group); err != nil {
			return "", fmt.Errorf("give the group %s its rights: %w", group, err)
		}
	}
	if err := g.awaitRights(ctx); err != nil {
		return "", err
	}
	authentication, err := authenticationclient.NewForConfig(g.opts.Upstream)
	if err != nil {
		return "", err
	}
	r, err := authentication.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask who the lab is: %w", err)
	}
	return r.Status.UserInfo.Username, nil
}

// giveAll binds a group to all rights if nobody did.
func (g *Guard) giveAll(ctx context.Context, rbac rbacclient.RbacV1Interface, group string) error {
	return g.bind(ctx, rbac, group, "cluster-admin")
}

// giveSome gives a group the rights in its namespaces, and to look around.
func (g *Guard) giveSome(ctx context.Context, rbac rbacclient.RbacV1Interface, group string) error {
	inside := group + "-namespace"
	for name, rules := range map[string][]rbacv1.PolicyRule{
		inside: within(g.opts.Custom), group: around(g.opts.Volumes),
	} {
		_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: g.opts.Labels}, Rules: rules,
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	for _, ns := range g.opts.Namespaces {
		_, err := rbac.RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: group}, RoleRef: roleRef(inside), Subjects: subject(group),
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return g.bind(ctx, rbac, group, group)
}

// bind gives a group a role everywhere.
func (g *Guard) bind(ctx context.Context, rbac rbacclient.RbacV1Interface, group, role string) error {
	_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group, Labels: g.opts.Labels}, RoleRef: roleRef(role),
		Subjects: subject(group),
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func subject(group string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}}
}

// awaitRights waits until the API server knows of the agent's rights: it reads bindings from a cache.
func (g *Guard) awaitRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	if len(g.opts.Namespaces) == 0 {
		return g.awaitRight(ctx, authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"})
	}
	for _, ns := range g.opts.Namespaces {
		err := g.awaitRight(ctx, authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: "pods"})
		if err != nil {
			return err
		}
	}
	return g.awaitRight(ctx, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"})
}

func (g *Guard) awaitRight(ctx context.Context, right authorizationv1.ResourceAttributes) error {
	authorization, err := authorizationclient.NewForConfig(g.opts.Upstream)
	if err != nil {
		return err
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: g.opts.User, Groups: g.opts.Groups, ResourceAttributes: &right,
	}}
	for {
		r, err := authorization.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && r.Status.Allowed {
			return nil
		}
		select {
		case <-time.After(rightsPoll):
		case <-ctx.Done():
			return fmt.Errorf("%s of %v did not get its rights: %w", g.opts.User, g.opts.Groups,
				errors.Join(err, ctx.Err()))
		}
	}
}
