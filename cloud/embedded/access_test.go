package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// as returns a client with a service account's token.
func (c *cluster) as(t *testing.T, ns, account string) *kubernetes.Clientset {
	t.Helper()
	r := await(t, func() (*authenticationv1.TokenRequest, error) {
		return c.client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	})
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = r.Status.Token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestRBAC(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader}]
`)
	reader := c.as(t, ns, "reader")
	await(t, func() (*v1.ConfigMapList, error) {
		return reader.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	})
	_, err := reader.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	want := fmt.Sprintf(`secrets is forbidden: User "system:serviceaccount:%s:reader" cannot list resource "secrets" in API group "" in the namespace %q`, ns, ns)
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("secrets: %v, want %s", err, want)
	}
	if err := reader.CoreV1().ConfigMaps(ns).Delete(t.Context(), "kube-root-ca.crt", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting: %v, want forbidden", err)
	}
	if _, err := reader.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace: %v, want forbidden", err)
	}
	// Nobody gives others more than they have.
	_, err = reader.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a new role: %v, want forbidden", err)
	}
	for verb, want := range map[string]bool{"get": true, "delete": false} {
		r, err := reader.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: "configmaps"}},
		}, metav1.CreateOptions{})
		if err != nil || r.Status.Allowed != want {
			t.Errorf("can-i %s configmaps: %v, %v", verb, r.Status.Allowed, err)
		}
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(c.config))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anonymous.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("anonymous: %v, want forbidden", err)
	}
}

// A role with a label adds to the roles that ask for it.
func TestClusterRoleAggregation(t *testing.T) {
	t.Parallel()
	c := shared(t)
	name := c.namespace(t) // Any unique name will do.
	c.apply(t, "", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+name+`, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [`+name+`], resources: [things], verbs: [get]}]
`)
	t.Cleanup(func() {
		_ = c.client.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	await(t, func() (*rbacv1.ClusterRole, error) {
		r, err := c.client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(r.Rules), name) {
			err = fmt.Errorf("role view has no rule for %s", name)
		}
		return r, err
	})
}

// A pod calls the API with the token and the certificate it finds in its file system.
func TestTokenInPod(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: app}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: app}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: app}]
---
apiVersion: v1
kind: Pod
metadata: {name: app, labels: {app: app}}
spec:
  serviceAccountName: app
  containers: [{name: app, image: `+agnhostImage+`}]
`)
	c.readyPods(t, ns, "app=app", 1)
	call := func(path string) string {
		const dir = "/var/run/secrets/kubernetes.io/serviceaccount"
		return c.exec(t, ns, "app", "sh", "-c", `curl -s --cacert `+dir+`/ca.crt -H "Authorization: Bearer $(cat `+dir+`/token)" https://kubernetes.default.svc`+path)
	}
	if got := call("/api/v1/namespaces/" + ns + "/pods/app"); !strings.Contains(got, `"kind": "Pod"`) || !strings.Contains(got, `"name": "app"`) {
		t.Errorf("the pod reads itself as %s", got)
	}
	if got := call("/api/v1/namespaces/" + ns + "/secrets"); !strings.Contains(got, `"reason": "Forbidden"`) || !strings.Contains(got, "system:serviceaccount:"+ns+":app") {
		t.Errorf("the pod reads secrets: %s", got)
	}
}

func TestValidatingAdmissionPolicy(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, "", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+ns+`}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 3
    messageExpression: "'at most 3 replicas, not ' + string(object.spec.replicas)"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+ns+`}
spec:
  policyName: `+ns+`
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`}}}
`)
	t.Cleanup(func() {
		a := c.client.AdmissionregistrationV1()
		_ = a.ValidatingAdmissionPolicyBindings().Delete(context.Background(), ns, metav1.DeleteOptions{})
		_ = a.ValidatingAdmissionPolicies().Delete(context.Background(), ns, metav1.DeleteOptions{})
	})
	c.apply(t, ns, fmt.Sprintf(webDeployment, 1, "one"))
	scale := func(n int32) error {
		s, err := c.client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Replicas = &n
		_, err = c.client.AppsV1().Deployments(ns).Update(t.Context(), s, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	want := fmt.Sprintf(`deployments.apps "web" is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s' denied request: at most 3 replicas, not 4`, ns, ns)
	awaitTrue(t, want, func() bool { // The server takes a moment to learn of the policy.
		err := scale(4)
		return err != nil && err.Error() == want
	})
	awaitTrue(t, "3 replicas are allowed", func() bool { return scale(3) == nil })
}
