package metricsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientset "k8s.io/client-go/kubernetes"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	group        = "metrics.k8s.io"
	groupVersion = group + "/v1beta1"
	nodeTimeout  = 5 * time.Second
)

var window = metav1.Duration{Duration: 15 * time.Second}

// api serves the resources.
type api struct {
	client clientset.Interface
	nodes  *kubelets
}

func (a *api) routes() http.Handler {
	open := http.NewServeMux()
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		open.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	}
	m := http.NewServeMux()
	root := "/apis/" + groupVersion
	m.HandleFunc("GET /apis", a.groups)
	m.HandleFunc("GET /apis/"+group, a.group)
	m.HandleFunc("GET "+root, a.resources)
	m.HandleFunc("GET "+root+"/nodes", a.listNodes)
	m.HandleFunc("GET "+root+"/nodes/{name}", a.getNode)
	m.HandleFunc("GET "+root+"/pods", a.listPods)
	m.HandleFunc("GET "+root+"/namespaces/{namespace}/pods", a.listPods)
	m.HandleFunc("GET "+root+"/namespaces/{namespace}/pods/{name}", a.getPod)
	open.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 { // Only the API server may ask.
			writeError(w, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		m.ServeHTTP(w, r)
	})
	return open
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func writeError(w http.ResponseWriter, err error) {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.Kind, s.APIVersion = "Status", "v1"
	writeJSON(w, int(s.Code), s)
}

func apiGroup() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: "v1beta1"}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: group,
		Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
	}
}

func (a *api) groups(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{apiGroup()},
	})
}

func (a *api) group(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, apiGroup()) }

func (a *api) resources(w http.ResponseWriter, _ *http.Request) {
	verbs := metav1.Verbs{"get", "list"}
	writeJSON(w, http.StatusOK, metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
		APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs},
			{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: verbs},
		},
	})
}

// summaries asks nodes for their figures, all at once. Nodes that do not answer are left out.
func (a *api) summaries(ctx context.Context, nodes []v1.Node) map[string]*statsapi.Summary {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := map[string]*statsapi.Summary{}
	for i := range nodes {
		wg.Go(func() {
			if s, err := a.nodes.summary(ctx, &nodes[i]); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[nodes[i].Name] = s
			}
		})
	}
	wg.Wait()
	return all
}

// usage converts figures; ok is false as long as there are none yet.
func usage(cpu *statsapi.CPUStats, memory *statsapi.MemoryStats) (list v1.ResourceList, ok bool) {
	if cpu == nil || cpu.UsageNanoCores == nil || memory == nil || memory.WorkingSetBytes == nil {
		return nil, false
	}
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewScaledQuantity(int64(*cpu.UsageNanoCores), resource.Nano),
		v1.ResourceMemory: *resource.NewQuantity(int64(*memory.WorkingSetBytes), resource.BinarySI),
	}, true
}

func (a *api) nodeMetrics(ctx context.Context, nodes []v1.Node) []metricsv1beta1.NodeMetrics {
	list := []metricsv1beta1.NodeMetrics{}
	all := a.summaries(ctx, nodes)
	for _, n := range nodes {
		s := all[n.Name]
		if s == nil {
			continue
		}
		if used, ok := usage(s.Node.CPU, s.Node.Memory); ok {
			list = append(list, metricsv1beta1.NodeMetrics{
				TypeMeta:   metav1.TypeMeta{Kind: "NodeMetrics", APIVersion: groupVersion},
				ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, CreationTimestamp: metav1.Now()},
				Timestamp:  s.Node.CPU.Time, Window: window, Usage: used,
			})
		}
	}
	return list
}

func (a *api) listNodes(w http.ResponseWriter, r *http.Request) {
	nodes, err := a.client.CoreV1().Nodes().List(r.Context(),
		metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, metricsv1beta1.NodeMetricsList{
		TypeMeta: metav1.TypeMeta{Kind: "NodeMetricsList", APIVersion: groupVersion},
		Items:    a.nodeMetrics(r.Context(), nodes.Items),
	})
}

func (a *api) getNode(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	node, err := a.client.CoreV1().Nodes().Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		writeError(w, err)
		return
	}
	list := a.nodeMetrics(r.Context(), []v1.Node{*node})
	if len(list) == 0 {
		writeError(w, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: "nodes"}, name))
		return
	}
	writeJSON(w, http.StatusOK, list[0])
}

// podMetrics joins pods with the figures of the nodes they are on.
func (a *api) podMetrics(ctx context.Context, pods []v1.Pod) ([]metricsv1beta1.PodMetrics, error) {
	nodes, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	figures := map[string]*statsapi.PodStats{}
	for _, s := range a.summaries(ctx, nodes.Items) {
		for i := range s.Pods {
			figures[s.Pods[i].PodRef.UID] = &s.Pods[i]
		}
	}
	list := []metricsv1beta1.PodMetrics{}
	for i := range pods {
		if s := figures[string(pods[i].UID)]; s != nil {
			if m, ok := podMetricsOf(&pods[i], s); ok {
				list = append(list, m)
			}
		}
	}
	return list, nil
}

// podMetricsOf joins a pod with its figures. Until all of its containers have some there are none.
func podMetricsOf(p *v1.Pod, s *statsapi.PodStats) (metricsv1beta1.PodMetrics, bool) {
	m := metricsv1beta1.PodMetrics{
		TypeMeta: metav1.TypeMeta{Kind: "PodMetrics", APIVersion: groupVersion},
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, Labels: p.Labels,
			CreationTimestamp: metav1.Now(),
		},
		Window: window,
	}
	for _, c := range s.Containers {
		used, ok := usage(c.CPU, c.Memory)
		if !ok {
			return m, false
		}
		m.Timestamp = c.CPU.Time
		m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: used})
	}
	return m, len(m.Containers) > 0
}

func (a *api) listPods(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	pods, err := a.client.CoreV1().Pods(r.PathValue("namespace")).List(r.Context(),
		metav1.ListOptions{LabelSelector: q.Get("labelSelector"), FieldSelector: q.Get("fieldSelector")})
	if err != nil {
		writeError(w, err)
		return
	}
	list, err := a.podMetrics(r.Context(), pods.Items)
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, metricsv1beta1.PodMetricsList{
		TypeMeta: metav1.TypeMeta{Kind: "PodMetricsList", APIVersion: groupVersion}, Items: list,
	})
}

func (a *api) getPod(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	pod, err := a.client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		writeError(w, err)
		return
	}
	list, err := a.podMetrics(r.Context(), []v1.Pod{*pod})
	switch {
	case err != nil:
		writeError(w, err)
	case len(list) == 0:
		writeError(w, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: "pods"}, namespace+"/"+name))
	default:
		writeJSON(w, http.StatusOK, list[0])
	}
}
