package aci

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/observe"
)

// TestMain is also the lab's binary, with a kubectl that prints its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		print := func(_ *tool.World, args []string) int {
			fmt.Println(strings.Join(args, " "))
			_, _ = io.Copy(os.Stdout, os.Stdin)
			return 0
		}
		os.Exit(tool.Run(os.Args[2:], map[string]tool.Program{ShellName: Shell(nil), "kubectl": print, "helm": print}))
	}
	goleak.VerifyTestMain(m)
}

// at is when things happen in these tests.
var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var shop = &app.App{
	Name: "shop", Title: "Shop", Namespace: "shop", Description: "A shop.", Operations: []string{"Buy"}, Label: "io.kompose.service",
	Services: []app.Service{{Name: "frontend", Kind: "service", Calls: []string{"geo"}}, {Name: "geo", Kind: "service"}},
}

// fake returns an interface to a cluster in which everybody is one handler.
func fake(t *testing.T, task string, h http.Handler) *Interface {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	o, err := observe.New(&rest.Config{Host: srv.URL}, dial, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{"token":"t"}}]}`, srv.URL)
	i, err := New(Options{
		Task: task, Questions: []string{"detection", "mitigation"}, App: shop, Observer: o, Dial: dial, Kubeconfig: []byte(kubeconfig), API: srv.Listener.Addr().String(),
		Dir: t.TempDir(), Self: []string{self, "tool"},
	})
	if err != nil {
		t.Fatal(err)
	}
	i.now = func() time.Time { return at }
	t.Cleanup(func() { i.Close() })
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return i
}

// do takes an action that an agent wrote.
func do(t *testing.T, i *Interface, call string) Result {
	t.Helper()
	c, err := Parse(fenced(call))
	if err != nil {
		t.Fatal(err)
	}
	return i.Do(t.Context(), c)
}

func reply(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

func object(v any) http.HandlerFunc {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return reply(string(b))
}

// cluster is a namespace "shop" with pods, logs, metrics and traces.
func cluster() *http.ServeMux {
	pod := func(name, service string) v1.Pod {
		return v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"io.kompose.service": service}},
			Spec:       v1.PodSpec{NodeName: "node-1", Containers: []v1.Container{{Name: service}}},
			Status:     v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
		}
	}
	broken := pod("rate-1", "rate")
	broken.Status = v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{{
		Name: "rate", RestartCount: 3, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}},
	}}}
	logs := map[string]string{
		"geo-1": "2026-03-01T11:58:00Z 11:58:00 INF hello\n2026-03-01T11:58:01Z 11:58:01 INF hello\n2026-03-01T11:59:30Z 11:59:30 ERR no database\n",
		"geo-2": "2026-03-01T11:59:10Z 11:59:10 INF hello\n",
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /api/v1/namespaces/shop/pods", object(v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{pod("geo-1", "geo"), pod("geo-2", "geo"), broken}}))
	m.HandleFunc("GET /api/v1/namespaces/{ns}/pods", object(v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}))
	m.HandleFunc("GET /api/v1/namespaces/shop/pods/{pod}/log", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, logs[r.PathValue("pod")]) })
	m.HandleFunc("GET /api/v1/namespaces/shop", object(v1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	service := func(name string, target int32) v1.Service {
		return v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ServiceSpec{Selector: map[string]string{"io.kompose.service": name}, Ports: []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(target)}}}}
	}
	m.HandleFunc("GET /api/v1/namespaces/shop/services", object(v1.ServiceList{TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"}, Items: []v1.Service{service("frontend", 80), service("geo", 8083), service("lonely", 80)}}))
	m.HandleFunc("GET /api/v1/namespaces/{ns}/services", object(v1.ServiceList{TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"}}))
	zero := int32(0)
	m.HandleFunc("GET /apis/apps/v1/namespaces/shop/deployments/frontend", object(appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, Spec: appsv1.DeploymentSpec{Replicas: &zero}}))
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	})
	const prometheus = "prometheus-server.observe.svc.cluster.local"
	m.HandleFunc("GET "+prometheus+"/api/v1/alerts", reply(`{"status":"success","data":{"alerts":[
		{"labels":{"alertname":"HighRequestErrorRate","namespace":"shop","severity":"critical","service":"geo"},"annotations":{"summary":"8% fail"},"state":"firing","activeAt":"2026-03-01T11:58:30Z","value":"8e-02"}]}}`))
	m.HandleFunc("POST "+prometheus+"/api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		series := ""
		if strings.HasPrefix(r.FormValue("query"), "container_cpu_usage_seconds_total") {
			series = `{"metric":{"pod":"geo-1","instance":"node-1"},"values":[[1772366340,"1.5"],[1772366355,"2"]]}`
		}
		reply(`{"status":"success","data":{"resultType":"matrix","result":[`+series+`]}}`)(w, r)
	})
	m.HandleFunc("POST "+prometheus+"/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		reply(`{"status":"success","data":{"resultType":"vector","result":[`+sample(r.FormValue("query"))+`]}}`)(w, r)
	})
	m.HandleFunc("GET jaeger.shop.svc.cluster.local/api/services", reply(`{"data":["frontend","geo"],"errors":null}`))
	m.HandleFunc("GET jaeger.shop.svc.cluster.local/api/traces", reply(`{"data":[`+jaegerTrace+`],"errors":null}`))
	m.HandleFunc("GET jaeger.shop.svc.cluster.local/api/traces/{id}", reply(`{"data":[`+jaegerTrace+`],"errors":null}`))
	m.HandleFunc("GET jaeger.shop.svc.cluster.local/api/dependencies", reply(`{"data":[{"parent":"frontend","child":"geo","callCount":3}],"errors":null}`))
	return m
}

// sample is what Prometheus answers to a query of a summary.
func sample(query string) string {
	pod := func(v string) string { return `{"metric":{"pod":"geo-1"},"value":[1772366400,"` + v + `"]}` }
	service := func(v string) string { return `{"metric":{"service":"geo"},"value":[1772366400,"` + v + `"]}` }
	switch {
	case !strings.Contains(query, `namespace="shop"`):
		return ""
	case strings.Contains(query, "throttled_periods"):
		return pod("0.5")
	case strings.Contains(query, "cpu_usage") && strings.Contains(query, "offset"):
		return pod("0.1")
	case strings.Contains(query, "cpu_usage") && strings.Contains(query, "[1m]"):
		return pod("0.4")
	case strings.Contains(query, "cpu_usage"):
		return pod("0.16")
	case strings.Contains(query, "working_set"):
		return pod("52428800")
	case strings.Contains(query, "memory_limit"):
		return pod("54525952")
	case strings.Contains(query, "increase(kube_pod"):
		return pod("1.02")
	case strings.Contains(query, "restarts_total"):
		return pod("4")
	case strings.Contains(query, "histogram_quantile") && strings.Contains(query, "offset"):
		return service("0.02")
	case strings.Contains(query, "histogram_quantile"):
		return service("0.5")
	case strings.Contains(query, "store_request"):
		return service("NaN")
	case strings.Contains(query, "grpc_code"):
		return service("2")
	case strings.Contains(query, "http_requests_total"):
		return service("10")
	}
	return ""
}

const jaegerTrace = `{"traceID":"t1","spans":[
	{"traceID":"t1","spanID":"s1","operationName":"GET /hotels","references":[],"startTime":1772366399000000,"duration":9000,"tags":[{"key":"http.status_code","type":"int64","value":500},{"key":"error","type":"bool","value":true}],"logs":[],"processID":"p1"},
	{"traceID":"t1","spanID":"s2","operationName":"geo.Geo/Nearby","references":[{"refType":"CHILD_OF","traceID":"t1","spanID":"s1"}],"startTime":1772366399001000,"duration":8000,"tags":[{"key":"error","type":"bool","value":true},{"key":"otel.status_description","type":"string","value":"not authorized on geo-db\nto execute command"}],"logs":[],"processID":"p2"}],
	"processes":{"p1":{"serviceName":"frontend","tags":[]},"p2":{"serviceName":"geo","tags":[]}}}`
