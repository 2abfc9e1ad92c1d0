package embedded_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// A service's addresses follow the readiness of its pods, in both APIs.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: web
    image: `+agnhostImage+`
    args: [netexec]
    readinessProbe:
      exec: {command: [test, -f, /tmp/ready]}
      periodSeconds: 1
      failureThreshold: 1
`)
	addresses := func() (ready, unready []string, err error) {
		e, err := c.client.CoreV1().Endpoints(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		for _, s := range e.Subsets {
			for _, a := range s.Addresses {
				ready = append(ready, fmt.Sprintf("%s:%d", a.IP, s.Ports[0].Port))
			}
			for _, a := range s.NotReadyAddresses {
				unready = append(unready, fmt.Sprintf("%s:%d", a.IP, s.Ports[0].Port))
			}
		}
		return ready, unready, nil
	}
	slice := func() (*discoveryv1.EndpointSlice, error) {
		list, err := c.client.DiscoveryV1().EndpointSlices(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err == nil && (len(list.Items) != 1 || len(list.Items[0].Endpoints) != 1) {
			err = fmt.Errorf("want one slice with one endpoint: %+v", list.Items)
		}
		if err != nil {
			return nil, err
		}
		return &list.Items[0], nil
	}
	expect := func(ready bool) {
		t.Helper()
		pod := c.awaitPod(t, ns, "web", "running", func(p *v1.Pod) bool { return p.Status.PodIP != "" })
		want := pod.Status.PodIP + ":8080"
		await(t, func() (none struct{}, err error) {
			in, out, err := addresses()
			if err != nil {
				return none, err
			}
			if !ready {
				in, out = out, in
			}
			if len(in) != 1 || in[0] != want || len(out) != 0 {
				return none, fmt.Errorf("want %s to be ready: %t; have %v and %v", want, ready, in, out)
			}
			s, err := slice()
			if err != nil {
				return none, err
			}
			if e := s.Endpoints[0]; *e.Conditions.Ready != ready || e.Addresses[0] != pod.Status.PodIP || *e.NodeName != pod.Spec.NodeName || *s.Ports[0].Port != 8080 {
				return none, fmt.Errorf("the slice has %+v", e)
			}
			return none, nil
		})
	}
	expect(false)
	url := "http://web." + ns + ".svc.cluster.local/hostname"
	if _, err := c.fetch(t.Context(), url); err == nil || !strings.Contains(err.Error(), "connect: connection refused") {
		t.Errorf("a service without endpoints answered with %v, want connection refused", err)
	}
	c.exec(t, ns, "web", "touch", "/tmp/ready")
	expect(true)
	if got := c.awaitFetch(t, url); got != "web" {
		t.Errorf("the service answered %q", got)
	}
	c.exec(t, ns, "web", "rm", "/tmp/ready")
	expect(false)
}

func TestNamespaceDeletion(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(webDeployment, 2, "one"))
	c.apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, finalizers: [example.com/wait]}}")
	c.readyPods(t, ns, "app=web", 2)
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// What has a finalizer holds the namespace, which says why.
	await(t, func() (*v1.Namespace, error) {
		n, err := c.client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == v1.NamespaceFinalizersRemaining && cond.Status == v1.ConditionTrue && strings.Contains(cond.Message, "example.com/wait") {
				return n, nil
			}
		}
		return nil, fmt.Errorf("the namespace does not tell what holds it: %+v", n.Status)
	})
	if _, err := c.client.CoreV1().ConfigMaps(ns).Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("creating in a namespace that goes: %v, want forbidden", err)
	}
	if _, err := c.client.CoreV1().ConfigMaps(ns).Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the namespace", func() (*v1.Namespace, error) {
		return c.client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	})
	pods, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods outlive their namespace, %v", len(pods.Items), err)
	}
}

func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	maps := c.client.CoreV1().ConfigMaps(ns)
	create := func(name string, owners ...*v1.ConfigMap) *v1.ConfigMap {
		m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, o := range owners {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID, BlockOwnerDeletion: ptr.To(true)})
		}
		m, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	get := func(name string) func() (*v1.ConfigMap, error) {
		return func() (*v1.ConfigMap, error) { return maps.Get(t.Context(), name, metav1.GetOptions{}) }
	}
	remove := func(name string, p metav1.DeletionPropagation) {
		t.Helper()
		if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &p}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := create("a"), create("b")
	create("of-a", a)
	create("of-both", a, b)
	remove("a", metav1.DeletePropagationBackground)
	awaitGone(t, "of-a", get("of-a"))
	await(t, func() (*v1.ConfigMap, error) { // It has an owner left.
		m, err := get("of-both")()
		if err == nil && len(m.OwnerReferences) != 1 {
			err = fmt.Errorf("of-both is owned by %v", m.OwnerReferences)
		}
		return m, err
	})
	remove("b", metav1.DeletePropagationOrphan)
	awaitGone(t, "b", get("b"))
	m, err := get("of-both")()
	if err != nil || len(m.OwnerReferences) != 0 {
		t.Errorf("the orphan: %v, owners %v", err, m.OwnerReferences)
	}

	// In the foreground, an owner goes last.
	c.apply(t, ns, fmt.Sprintf(webDeployment, 2, "one"))
	c.readyPods(t, ns, "app=web", 2)
	if err := c.client.AppsV1().Deployments(ns).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the deployment", func() (*appsv1.Deployment, error) {
		return c.client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	})
	sets, err := c.client.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 0 {
		t.Errorf("%d ReplicaSets outlive their Deployment, %v", len(sets.Items), err)
	}
	c.readyPods(t, ns, "app=web", 0)
}

// The pod garbage collector ends what no kubelet will.
func TestPodGC(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: nowhere, finalizers: [example.com/wait]}
spec:
  nodeSelector: {no: such}
  containers: [{name: main, image: registry.k8s.io/pause:3.10}]
`)
	pods := c.client.CoreV1().Pods(ns)
	if err := pods.Delete(t.Context(), "nowhere", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitPod(t, ns, "nowhere", "failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	if _, err := pods.Patch(t.Context(), "nowhere", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the pod", func() (*v1.Pod, error) { return pods.Get(t.Context(), "nowhere", metav1.GetOptions{}) })
}

func TestResourceQuota(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small}, spec: {hard: {pods: 1, requests.cpu: 100m}}}")
	used := func(want string) {
		t.Helper()
		await(t, func() (*v1.ResourceQuota, error) {
			q, err := c.client.CoreV1().ResourceQuotas(ns).Get(t.Context(), "small", metav1.GetOptions{})
			if err == nil && fmt.Sprint(q.Status.Used.Pods(), q.Status.Used.Name("requests.cpu", "")) != want {
				err = fmt.Errorf("used is %+v, want %s", q.Status.Used, want)
			}
			return q, err
		})
	}
	pod := func(name, cpu string) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(0)),
				Containers:                    []v1.Container{{Name: "main", Image: pauseImage, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: quantity(cpu)}}}},
			},
		}
	}
	used("0 0")
	pods := c.client.CoreV1().Pods(ns)
	awaitTrue(t, "too big a pod is refused", func() bool { // The server takes a moment to learn of the quota.
		_, err := pods.Create(t.Context(), pod("big", "200m"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})
	if _, err := pods.Create(t.Context(), pod("a", "60m"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := pods.Create(t.Context(), pod("b", "60m"), metav1.CreateOptions{})
	const want = `pods "b" is forbidden: exceeded quota: small, requested: pods=1,requests.cpu=60m, used: pods=1,requests.cpu=60m, limited: pods=1,requests.cpu=100m`
	if err == nil || err.Error() != want {
		t.Errorf("the second pod: %v, want %s", err, want)
	}
	used("1 60m")
	if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	used("0 0")
	await(t, func() (*v1.Pod, error) { return pods.Create(t.Context(), pod("b", "60m"), metav1.CreateOptions{}) })
}

// A new namespace has an account for its pods, the cluster's certificate, and tokens for those who
// ask in the old way or the new.
func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	ca := await(t, func() (*v1.ConfigMap, error) {
		return c.client.CoreV1().ConfigMaps(ns).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	})
	if ca.Data["ca.crt"] != string(c.config.CAData) {
		t.Error("kube-root-ca.crt is not the certificate that clients are given")
	}
	c.apply(t, ns, `
apiVersion: v1
kind: Secret
metadata: {name: old, annotations: {kubernetes.io/service-account.name: default}}
type: kubernetes.io/service-account-token
`)
	secret := await(t, func() (*v1.Secret, error) {
		s, err := c.client.CoreV1().Secrets(ns).Get(t.Context(), "old", metav1.GetOptions{})
		if err == nil && len(s.Data["token"]) == 0 {
			err = errors.New("the secret has no token")
		}
		return s, err
	})
	request, err := c.client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, token := range map[string]string{"secret": string(secret.Data["token"]), "request": request.Status.Token} {
		await(t, func() (none struct{}, err error) { // The server takes a moment to learn of a secret.
			r, err := c.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
			if want := "system:serviceaccount:" + ns + ":default"; err == nil && (!r.Status.Authenticated || r.Status.User.Username != want) {
				err = fmt.Errorf("the token of the %s is of %q, want %s", kind, r.Status.User.Username, want)
			}
			return none, err
		})
	}
	// Tokens end with their account.
	if err := c.client.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the secret", func() (*v1.Secret, error) {
		return c.client.CoreV1().Secrets(ns).Get(t.Context(), "old", metav1.GetOptions{})
	})
}
