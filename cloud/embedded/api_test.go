package embedded_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
)

// The server tells the version of the Kubernetes module that go.mod asks for.
func TestVersion(t *testing.T) {
	t.Parallel()
	c := shared(t)
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "\tk8s.io/kubernetes ")
	want, _, _ := strings.Cut(rest, "\n")
	got, err := c.client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != want || !strings.HasPrefix(want, fmt.Sprintf("v%s.%s.", got.Major, got.Minor)) {
		t.Errorf("the server is %s (%s.%s), linked is %s", got.GitVersion, got.Major, got.Minor, want)
	}
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 3 {
		t.Errorf("%d nodes, want 3", len(nodes.Items))
	}
	for _, n := range nodes.Items {
		if n.Status.NodeInfo.KubeletVersion != want {
			t.Errorf("the kubelet of %s is %s, want %s", n.Name, n.Status.NodeInfo.KubeletVersion, want)
		}
	}
}

// kubectl get componentstatuses tells of the cluster's own parts: nothing of the machine is asked.
func TestComponentStatuses(t *testing.T) {
	t.Parallel()
	c := shared(t)
	list, err := c.client.CoreV1().ComponentStatuses().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	health := map[string]v1.ComponentCondition{}
	for _, s := range list.Items {
		health[s.Name] = s.Conditions[0]
	}
	ok := v1.ComponentCondition{Type: v1.ComponentHealthy, Status: v1.ConditionTrue, Message: "ok"}
	want := map[string]v1.ComponentCondition{"scheduler": ok, "controller-manager": ok, "etcd-0": ok}
	if diff := cmp.Diff(want, health); diff != "" {
		t.Errorf("the components are (-want +got):\n%s", diff)
	}
	one, err := c.client.CoreV1().ComponentStatuses().Get(t.Context(), "scheduler", metav1.GetOptions{})
	if err != nil || one.Conditions[0] != ok {
		t.Errorf("the scheduler: %+v, %v", one, err)
	}
	if _, err := c.client.CoreV1().ComponentStatuses().Get(t.Context(), "etcd-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an unknown component: %v", err)
	}
	table, err := c.client.CoreV1().RESTClient().Get().Resource("componentstatuses").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil || strings.Count(string(table), `"Healthy","ok"`) != 3 {
		t.Errorf("the table: %s, %v", table, err)
	}
}

func TestInformer(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	f := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(ns),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "watched=yes" }))
	seen := make(chan string, 10)
	note := func(what string, obj any) {
		m := obj.(*v1.ConfigMap)
		seen <- fmt.Sprintf("%s %s=%s", what, m.Name, m.Data["k"])
	}
	i := f.Core().V1().ConfigMaps().Informer()
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { note("add", obj) },
		UpdateFunc: func(_, obj any) { note("update", obj) },
		DeleteFunc: func(obj any) { note("delete", obj) },
	}); err != nil {
		t.Fatal(err)
	}
	f.Start(t.Context().Done())
	t.Cleanup(f.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	maps := c.client.CoreV1().ConfigMaps(ns)
	m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"watched": "yes"}}, Data: map[string]string{"k": "1"}}
	m, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// An object that the selector leaves out must not show.
	if _, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.Data["k"] = "2"
	if _, err = maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"add a=1", "update a=2", "delete a=2"} {
		got := await(t, func() (string, error) {
			select {
			case s := <-seen:
				return s, nil
			default:
				return "", fmt.Errorf("nothing came, want %q", want)
			}
		})
		if got != want {
			t.Errorf("the informer saw %q, want %q", got, want)
		}
	}
}

// metrics.k8s.io is served by a pod behind the API server.
func TestAggregatedAPI(t *testing.T) {
	t.Parallel()
	c := shared(t)
	a, err := aggregator.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() (*apiregistrationv1.APIService, error) {
		s, err := a.ApiregistrationV1().APIServices().Get(t.Context(), "v1beta1.metrics.k8s.io", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for _, cond := range s.Status.Conditions {
			if cond.Type == apiregistrationv1.Available && cond.Status == apiregistrationv1.ConditionTrue && cond.Reason == "Passed" {
				return s, nil
			}
		}
		return nil, fmt.Errorf("%s is not available: %+v", s.Name, s.Status.Conditions)
	})
	list, err := c.client.Discovery().ServerResourcesForGroupVersion("metrics.k8s.io/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	if len(list.APIResources) != 2 {
		t.Errorf("metrics.k8s.io has %+v, want nodes and pods", list.APIResources)
	}
}
