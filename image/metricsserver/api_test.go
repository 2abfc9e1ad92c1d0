package metricsserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/ptr"
)

// fakeKubelets answers for nodes by their address. Others are not there.
type fakeKubelets map[string]statsapi.Summary

func (f fakeKubelets) RoundTrip(r *http.Request) (*http.Response, error) {
	s, ok := f[r.URL.Host+r.URL.Path]
	if !ok {
		return nil, errors.New("no route to host")
	}
	b, err := json.Marshal(s)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, err
}

func cpu(nano uint64) *statsapi.CPUStats {
	return &statsapi.CPUStats{Time: metav1.NewTime(time.Unix(1700000000, 0)), UsageNanoCores: &nano}
}

func memory(bytes uint64) *statsapi.MemoryStats {
	return &statsapi.MemoryStats{WorkingSetBytes: &bytes}
}

func node(name, ip string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node": name}},
		Status: v1.NodeStatus{
			Addresses:       []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}, {Type: v1.NodeInternalIP, Address: ip}},
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 10250}},
		},
	}
}

func pod(namespace, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}}}
}

// server has two nodes, one of which does not answer, and three pods, one of which has no figures.
func server() http.Handler {
	container := func(name string, c *statsapi.CPUStats, m *statsapi.MemoryStats) statsapi.ContainerStats {
		return statsapi.ContainerStats{Name: name, CPU: c, Memory: m}
	}
	summary := statsapi.Summary{
		Node: statsapi.NodeStats{CPU: cpu(250_000_000), Memory: memory(1 << 30)},
		Pods: []statsapi.PodStats{
			{PodRef: statsapi.PodReference{UID: "web"}, Containers: []statsapi.ContainerStats{container("c", cpu(5_000_000), memory(16<<20)), container("s", cpu(0), memory(0))}},
			{PodRef: statsapi.PodReference{UID: "db"}, Containers: []statsapi.ContainerStats{container("c", cpu(1), memory(1))}},
			// It has just started: its first figures are yet to come.
			{PodRef: statsapi.PodReference{UID: "new"}, Containers: []statsapi.ContainerStats{container("c", &statsapi.CPUStats{}, nil)}},
		},
	}
	nodes := &kubelets{&http.Client{Transport: fakeKubelets{"10.0.0.1:10250/stats/summary": summary}}}
	client := fake.NewClientset(node("n1", "10.0.0.1"), node("n2", "10.0.0.2"), pod("shop", "web"), pod("shop", "new"), pod("data", "db"))
	return (&api{client: client, nodes: nodes}).routes()
}

// get asks as the API server does.
func get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	w := httptest.NewRecorder()
	server().ServeHTTP(w, r)
	return w
}

func TestMetrics(t *testing.T) {
	const root = "/apis/metrics.k8s.io/v1beta1"
	const web, db = "shop/web c=5m/16Mi s=0/0", "data/db c=1n/1"
	tests := []struct {
		path string
		want []string
	}{
		{root + "/nodes", []string{"/n1 250m/1Gi"}},
		{root + "/nodes?labelSelector=node%3Dn2", nil},
		{root + "/pods", []string{db, web}},
		{root + "/namespaces/shop/pods", []string{web}},
		{root + "/namespaces/shop/pods?labelSelector=app%3Dother", nil},
		{root + "/namespaces/none/pods", nil},
	}
	for _, tt := range tests {
		w := get(tt.path)
		var list struct {
			Kind  string
			Items []struct {
				metav1.ObjectMeta `json:"metadata"`
				Usage             v1.ResourceList
				Containers        []metricsv1beta1.ContainerMetrics
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK || !strings.HasSuffix(list.Kind, "MetricsList") {
			t.Errorf("%s: %d %v %s", tt.path, w.Code, err, w.Body)
			continue
		}
		var got []string
		show := func(l v1.ResourceList) string { return l.Cpu().String() + "/" + l.Memory().String() }
		for _, i := range list.Items {
			line := i.Namespace + "/" + i.Name
			if i.Usage != nil {
				line += " " + show(i.Usage)
			}
			for _, c := range i.Containers {
				line += " " + c.Name + "=" + show(c.Usage)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.path, diff)
		}
	}
}

func TestOneAndNone(t *testing.T) {
	const root = "/apis/metrics.k8s.io/v1beta1"
	for path, want := range map[string]struct {
		code int
		text string
	}{
		root + "/nodes/n1":                     {200, `"usage":{"cpu":"250m","memory":"1Gi"}`},
		root + "/nodes/n2":                     {404, `nodes.metrics.k8s.io \"n2\" not found`},
		root + "/nodes/n3":                     {404, `nodes \"n3\" not found`},
		root + "/namespaces/shop/pods/web":     {200, `"window":"15s"`},
		root + "/namespaces/shop/pods/new":     {404, `pods.metrics.k8s.io \"shop/new\" not found`},
		root + "/namespaces/shop/pods/missing": {404, `pods \"missing\" not found`},
		root:                                   {200, `"name":"pods"`},
		"/apis":                                {200, `"name":"metrics.k8s.io"`},
		"/apis/metrics.k8s.io":                 {200, `"preferredVersion":{"groupVersion":"metrics.k8s.io/v1beta1"`},
		"/elsewhere":                           {404, ""},
	} {
		if w := get(path); w.Code != want.code || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestOnlyTheAPIServerMayAsk(t *testing.T) {
	for path, code := range map[string]int{"/apis": 401, "/apis/metrics.k8s.io/v1beta1/nodes": 401, "/livez": 200, "/readyz": 200} {
		w := httptest.NewRecorder()
		server().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestNoFigures(t *testing.T) {
	for name, s := range map[string]statsapi.ContainerStats{
		"none": {}, "no rate": {CPU: &statsapi.CPUStats{}, Memory: memory(1)}, "no memory": {CPU: cpu(1), Memory: &statsapi.MemoryStats{UsageBytes: ptr.To[uint64](1)}},
	} {
		if _, ok := usage(s.CPU, s.Memory); ok {
			t.Errorf("%s: there are figures", name)
		}
	}
}
