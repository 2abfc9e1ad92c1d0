package embedded_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/guard"
)

const (
	meshRun      = "mesh1"
	meshQuarters = "aiopslab-mesh1"
	meshShop     = "mesh-shop"
)

// meshApp is what is disturbed, and a pod that stands for Chaos Mesh's controller.
const meshApp = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: geo, namespace: mesh-shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: geo}}
  template:
    metadata: {labels: {app: geo}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: geo, image: ` + pauseImage + `, volumeMounts: [{name: data, mountPath: /data/db}]}]
      volumes: [{name: data, emptyDir: {}}]
`

func meshed(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "chaos-mesh.org", Version: "v1alpha1", Resource: resource}
}

// TestChaosMesh has a run disturb its pods through Chaos Mesh's API: what it asks for is what that API accepts, it follows
// the pods, and an agent finds nothing of it. The controller is one of the test's; nothing is truly disturbed.
func TestChaosMesh(t *testing.T) {
	t.Parallel()
	c := shared(t)
	c.installMesh(t)
	b, err := c.Kubeconfig("test")
	if err != nil {
		t.Fatal(err)
	}
	host, err := kube.Open(t.Context(), kube.Options{Config: b})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	claim, err := host.Claim(t.Context(), meshRun, meshShop)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Close(context.Background()) //nolint:errcheck // It is closed before, or the test has failed.
	c.apply(t, meshShop, meshApp)
	c.readyPods(t, meshShop, "app=geo", 2)
	guest, err := kube.Open(t.Context(), kube.Options{Config: b, Run: meshRun, Namespaces: claim.Tenancy().Namespaces})
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()

	geo := cloud.Selector{Namespace: meshShop, Labels: map[string]string{"app": "geo"}}
	for resource, list := range map[string][]cloud.Disturbance{
		"podchaos": {
			{Pod: &cloud.PodChaos{Action: cloud.PodFailure}}, {Pod: &cloud.PodChaos{Action: cloud.ContainerKill}},
		},
		"networkchaos": {
			{Network: &cloud.NetworkChaos{Loss: 0.99}},
			{Network: &cloud.NetworkChaos{Partition: true, Direction: cloud.Both}},
			{Network: &cloud.NetworkChaos{Delay: 2 * time.Second, Jitter: time.Second, Corrupt: 0.5, Duplicate: 0.5}},
			{Network: &cloud.NetworkChaos{Bandwidth: 1000}},
			{Network: &cloud.NetworkChaos{Delay: time.Second, Direction: cloud.From, Target: &geo}},
		},
		"stresschaos": {{Stress: &cloud.StressChaos{CPU: 2.5, Memory: 1 << 30}}},
		"iochaos": {
			{IO: &cloud.IOChaos{Path: "/data/db", Methods: []string{"write"}, Errno: "EIO", Percent: 50}},
			{IO: &cloud.IOChaos{Path: "/data/db/journal", Latency: time.Second}},
		},
	} {
		for _, d := range list {
			d.Selector = geo
			stop, err := guest.Disturb(t.Context(), d)
			if err != nil {
				t.Errorf("%s: %v", resource, err)
				continue
			}
			if got := len(c.mesh(t, resource)); got != 2 {
				t.Errorf("%s: %d objects for 2 pods", resource, got)
			}
			if err := stop(t.Context()); err != nil || len(c.mesh(t, resource)) > 0 {
				t.Errorf("%s: %v, and %d are left", resource, err, len(c.mesh(t, resource)))
			}
		}
	}

	if _, err := guest.Disturb(t.Context(), cloud.Disturbance{Selector: geo, Network: &cloud.NetworkChaos{Loss: 1}}); err != nil {
		t.Fatal(err)
	}
	pods := c.readyPods(t, meshShop, "app=geo", 2)
	if err := c.client.CoreV1().Pods(meshShop).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "the successor is disturbed, and the pod that is gone is not", func() bool {
		now := c.readyPods(t, meshShop, "app=geo", 2)
		return slices.Equal(c.mesh(t, "networkchaos"), []string{now[0].Name, now[1].Name})
	})
	c.attackMesh(t, guest, pods[1].Name)
	// The run ends without a word: whoever removes it removes the disturbance.
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	if err := claim.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := c.mesh(t, "networkchaos"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	awaitGone(t, "the namespace", func() (*v1.Namespace, error) {
		return c.client.CoreV1().Namespaces().Get(t.Context(), meshQuarters, metav1.GetOptions{})
	})
}

// installMesh gives the cluster the definitions of Chaos Mesh, and a controller.
func (c *cluster) installMesh(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile("testdata/chaos-mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range c.apply(t, "", string(b)) {
		t.Cleanup(func() {
			_ = c.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
				Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{})
		})
		plural, _, _ := strings.Cut(crd.GetName(), ".")
		await(t, func() (any, error) { return c.dynamic.Resource(meshed(plural)).List(t.Context(), metav1.ListOptions{}) })
	}
	ns := c.namespace(t)
	c.apply(t, ns, `{apiVersion: v1, kind: Pod, metadata: {name: manager, labels: {app.kubernetes.io/component: controller-manager,
  app.kubernetes.io/part-of: chaos-mesh}}, spec: {containers: [{name: c, image: "`+pauseImage+`"}]}}`)
	c.readyPods(t, ns, "app.kubernetes.io/part-of=chaos-mesh", 1)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			for _, resource := range []string{"podchaos", "networkchaos", "stresschaos", "iochaos"} {
				list, err := c.dynamic.Resource(meshed(resource)).Namespace(meshQuarters).List(ctx, metav1.ListOptions{})
				if err != nil {
					continue
				}
				for _, o := range list.Items {
					c.controlMesh(ctx, resource, &o)
				}
			}
			select {
			case <-time.After(poll):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
}

// controlMesh does for an object what Chaos Mesh's controller would, but for its effect. It chooses a pod once, and
// leaves an object in the pod's own namespace, and an event about that. What fails is done the next time.
func (c *cluster) controlMesh(ctx context.Context, resource string, o *unstructured.Unstructured) {
	objects := c.dynamic.Resource(meshed(resource)).Namespace(o.GetNamespace())
	own := c.dynamic.Resource(meshed("podnetworkchaos")).Namespace(meshShop)
	pod := meshPod(o)
	switch {
	case o.GetDeletionTimestamp() != nil:
		_ = own.Delete(ctx, pod, metav1.DeleteOptions{})
		o.SetFinalizers(nil)
	case len(o.GetFinalizers()) == 0:
		o.SetFinalizers([]string{"chaos-mesh/records"})
	case o.Object["status"] == nil:
		if _, err := c.client.CoreV1().Pods(meshShop).Get(ctx, pod, metav1.GetOptions{}); err != nil {
			return
		}
		mark := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": pod}, "spec": map[string]any{}}}
		mark.SetGroupVersionKind(schema.GroupVersionKind{Group: "chaos-mesh.org", Version: "v1alpha1", Kind: "PodNetworkChaos"})
		_, _ = own.Create(ctx, mark, metav1.CreateOptions{})
		_, _ = c.client.CoreV1().Events(meshShop).Create(ctx, &v1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "applied-"}, Reason: "Applied", Message: "chaos is applied",
			InvolvedObject: v1.ObjectReference{APIVersion: "chaos-mesh.org/v1alpha1", Kind: "PodNetworkChaos", Namespace: meshShop, Name: pod},
		}, metav1.CreateOptions{})
		o.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Selected", "status": "True"}, map[string]any{"type": "AllInjected", "status": "True"},
		}, "experiment": map[string]any{"containerRecords": []any{
			map[string]any{"id": meshShop + "/" + pod, "selectorKey": ".", "phase": "Injected"},
		}}}
	default:
		return
	}
	_, _ = objects.Update(ctx, o, metav1.UpdateOptions{})
}

// mesh are the pods that objects of a resource are for.
func (c *cluster) mesh(t *testing.T, resource string) (pods []string) {
	t.Helper()
	list, err := c.dynamic.Resource(meshed(resource)).Namespace(meshQuarters).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		pods = append(pods, meshPod(&o))
	}
	slices.Sort(pods)
	return pods
}

func meshPod(o *unstructured.Unstructured) string {
	names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "selector", "pods", meshShop)
	return strings.Join(names, ",")
}

// attackMesh looks for what disturbs a pod, as an agent with its rights of a guest: through its door, and past it.
func (c *cluster) attackMesh(t *testing.T, guest *kube.Cloud, pod string) {
	t.Helper()
	if _, err := c.dynamic.Resource(meshed("podnetworkchaos")).Namespace(meshShop).Get(t.Context(), pod, metav1.GetOptions{}); err != nil {
		t.Errorf("there is nothing to be found: %v", err)
	}
	tenancy := guest.Tenancy()
	g, err := guard.Start(t.Context(), guard.Options{
		Upstream: guest.RESTConfig(), Groups: []string{"sre-team-" + tenancy.Run}, Namespaces: tenancy.Namespaces, Labels: tenancy.Labels,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	b, err := g.Kubeconfig(meshShop)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		t.Fatal(err)
	}
	client, dyn := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	groups, lists, err := client.Discovery().ServerGroupsAndResources() // kubectl api-resources
	told := fmt.Sprint(groups, lists, err)
	for _, path := range []string{"/apis", "/openapi/v2", "/openapi/v3", "/api/v1/namespaces", "/api/v1/namespaces/" + meshShop + "/events", "/api/v1/namespaces/" + meshShop + "/pods", "/apis/events.k8s.io/v1/namespaces/" + meshShop + "/events"} {
		raw, err := client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		told += string(raw)
	}
	for _, word := range []string{"chaos-mesh", "NetworkChaos", "aiopslab-", "aiopslab.io/disturbance"} {
		if i := strings.Index(told, word); i >= 0 {
			t.Errorf("it is told: ...%s...", told[max(0, i-200):min(len(told), i+100)])
		}
	}
	for _, ns := range []string{meshShop, meshQuarters, ""} {
		for _, resource := range []string{"networkchaos", "podnetworkchaos"} {
			if list, err := dyn.Resource(meshed(resource)).Namespace(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s in %q: %v, %v", resource, ns, list, err)
			}
			if err := dyn.Resource(meshed(resource)).Namespace(ns).Delete(t.Context(), pod, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s in %q can be deleted: %v", resource, ns, err)
			}
			// A service account that it makes has no more rights than it has itself.
			for _, verb := range []string{"get", "list", "watch", "create", "delete"} {
				review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User: guard.DefaultUser, Groups: []string{"sre-team-" + tenancy.Run},
						ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Group: "chaos-mesh.org", Version: "v1alpha1", Resource: resource},
					},
				}, metav1.CreateOptions{})
				if err != nil || review.Status.Allowed {
					t.Errorf("it may %s %s in %q: %v", verb, resource, ns, err)
				}
			}
		}
	}
	if ns, err := client.CoreV1().Namespaces().Get(t.Context(), meshQuarters, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it sees %v: %v", ns, err)
	}
	for what, err := range map[string]error{
		"pods":   errorOf(client.CoreV1().Pods(meshQuarters).List(t.Context(), metav1.ListOptions{})),
		"events": errorOf(client.CoreV1().Events(meshQuarters).List(t.Context(), metav1.ListOptions{})),
	} {
		if err == nil {
			t.Errorf("it may list the %s of %s", what, meshQuarters)
		}
	}
}

// errorOf is the error of an answer.
func errorOf[T any](_ T, err error) error { return err }
