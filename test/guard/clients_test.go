package guard

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"github.com/aiopslab/aiopslab/guard"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

const web = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: nginx, image: "nginx:1.29", ports: [{containerPort: 80}]}]
`

const loadgen = `
apiVersion: v1
kind: Pod
metadata: {name: load, labels: {role: loadgen}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: busybox, command: [sh, -c, "while true; do echo secret; sleep 1; done"]}]
`

// behind is an agent in a namespace with a pod it sees and one it does not.
func behind(t *testing.T) *agent {
	a := newAgent(t, guard.Rule{Resource: "pods", Labels: "role=loadgen"})
	labApplies(t, a.ns, web+"---"+loadgen)
	ready(t, a.ns, "web")
	ready(t, a.ns, "load")
	return a
}

func TestReads(t *testing.T) {
	a := behind(t)
	ctx := t.Context()
	only := func(form string, names []string, err error) {
		t.Helper()
		if err != nil || !slices.Equal(names, []string{"web"}) {
			t.Errorf("%s: %v, %v; want web alone", form, names, err)
		}
	}
	typed, err := a.client.CoreV1().Pods(a.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range typed.Items {
		names = append(names, p.Name)
		if p.ManagedFields != nil {
			t.Errorf("%s has managed fields", p.Name)
		}
	}
	only("typed", names, err)

	names = nil
	dyn, err := dynamic.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	// One page at a time.
	for opts := (metav1.ListOptions{Limit: 1}); ; {
		l, err := dyn.Resource(podResource).Namespace(a.ns).List(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range l.Items {
			names = append(names, u.GetName())
		}
		if opts.Continue = l.GetContinue(); opts.Continue == "" {
			break
		}
	}
	only("pages", names, nil)

	md, err := metadata.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []schema.GroupVersionResource{podResource, {Version: "v1", Resource: "events"}} {
		l, err := md.Resource(r).Namespace(a.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range l.Items {
			if strings.HasPrefix(m.Name, "load") || m.ManagedFields != nil || m.Kind != "PartialObjectMetadata" {
				t.Errorf("metadata of %s: %+v", r.Resource, m)
			}
		}
		if len(l.Items) == 0 {
			t.Errorf("no metadata of %s", r.Resource)
		}
	}
	events, err := a.client.CoreV1().Events(a.ns).List(ctx, metav1.ListOptions{})
	if err != nil || len(events.Items) == 0 {
		t.Errorf("%d events, %v", len(events.Items), err)
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == "load" {
			t.Errorf("an event of %s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
	if _, err := a.client.CoreV1().Pods(a.ns).Get(ctx, "load", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the hidden pod: %v", err)
	}
	r, err := a.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || r.Status.UserInfo.Username != "sre" || !slices.Contains(r.Status.UserInfo.Groups, "sre-team") {
		t.Errorf("who am I: %v, %v", r.Status, err)
	}
	can, err := a.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes"}},
	}, metav1.CreateOptions{})
	if err != nil || !can.Status.Allowed {
		t.Errorf("may I: %v, %v", can.Status, err)
	}
	if j := a.journal(); len(j) != 0 {
		t.Errorf("reads are journalled: %+v", j)
	}
}

// TestInformer follows pods through an informer while they come and go.
func TestInformer(t *testing.T) {
	a := behind(t)
	f := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithNamespace(a.ns))
	seen := make(chan string, 100)
	informer := f.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen <- "added " + o.(*v1.Pod).Name },
		DeleteFunc: func(o any) { seen <- "deleted " + fmt.Sprint(o.(*v1.Pod).Name) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer f.Shutdown()
	defer cancel()
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	labApplies(t, a.ns, strings.ReplaceAll(loadgen, "name: load", "name: load-2")+"---"+strings.ReplaceAll(web, "name: web", "name: web-2"))
	if err := lab.Client.CoreV1().Pods(a.ns).Delete(t.Context(), "load", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := lab.Client.CoreV1().Pods(a.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for !slices.Contains(got, "deleted web") {
		select {
		case s := <-seen:
			got = append(got, s)
		case <-time.After(patience):
			t.Fatalf("only %v", got)
		}
	}
	if want := []string{"added web", "added web-2", "deleted web"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestStreams(t *testing.T) {
	a := behind(t)
	pods := a.client.CoreV1().RESTClient()
	u := pods.Post().Resource("pods").Namespace(a.ns).Name("web").SubResource("exec").
		VersionedParams(&v1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true}, scheme.ParameterCodec).URL()
	ws, err := remotecommand.NewWebSocketExecutor(a.config, http.MethodGet, u.String())
	if err != nil {
		t.Fatal(err)
	}
	sp, err := remotecommand.NewSPDYExecutor(a.config, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("0123456789abcdef", 1<<16)
	for name, e := range map[string]remotecommand.Executor{"WebSocket": ws, "SPDY": sp} {
		var out bytes.Buffer
		if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader(large), Stdout: &out}); err != nil || out.String() != large {
			t.Errorf("exec over %s: %d bytes of %d came back, %v", name, out.Len(), len(large), err)
		}
	}
	j := a.journal()
	if len(j) != 2 || j[0].Verb != "connect" || j[0].Subresource != "exec" || j[0].Name != "web" || !slices.Equal(j[0].Command, []string{"cat"}) || j[0].Status != 101 {
		t.Errorf("%+v", j)
	}
	a.portForward(t)

	logs, err := a.client.CoreV1().Pods(a.ns).GetLogs("web", &v1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	lines := bufio.NewScanner(logs)
	for lines.Scan() && !strings.Contains(lines.Text(), "GET / HTTP/1.1") {
	}
	if err := lines.Err(); err != nil {
		t.Error("logs end before the request is there: ", err)
	}
	for _, path := range []string{"exec?command=ls", "attach", "portforward", "log", "proxy/"} {
		err := pods.Get().AbsPath("/api/v1/namespaces/" + a.ns + "/pods/load/" + path).Do(t.Context()).Error()
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s of a hidden pod: %v", path, err)
		}
	}
	page, err := pods.Get().AbsPath("/api/v1/namespaces/" + a.ns + "/pods/web:80/proxy/").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(page), "Welcome to nginx") {
		t.Errorf("a page through the API server: %.100s, %v", page, err)
	}
}

// list makes a slice of values whose type need not be named: the dialers' is deprecated, and still
// what client-go takes.
func list[T any](values ...T) []T { return values }

// portForward asks a pod for a page through both protocols for that.
func (a *agent) portForward(t *testing.T) {
	t.Helper()
	u := a.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(a.ns).Name("web").SubResource("portforward").URL()
	roundTripper, upgrader, err := spdy.RoundTripperFor(a.config)
	if err != nil {
		t.Fatal(err)
	}
	overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, http.MethodPost, u)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialer(u, a.config)
	if err != nil {
		t.Fatal(err)
	}
	for i, dialer := range list(overSPDY, overWebSocket) {
		name := []string{"SPDY", "WebSocket"}[i]
		stop, readyCh := make(chan struct{}), make(chan struct{})
		f, err := portforward.New(dialer, []string{"0:80"}, stop, readyCh, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- f.ForwardPorts() }()
		select {
		case <-readyCh:
		case err := <-done:
			t.Fatalf("port-forward over %s: %v", name, err)
		}
		ports, err := f.GetPorts()
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
		if err != nil {
			t.Fatalf("port-forward over %s: %v", name, err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(b), "Welcome to nginx") {
			t.Errorf("port-forward over %s: %.100s, %v", name, b, err)
		}
		close(stop)
		if err := <-done; err != nil {
			t.Errorf("port-forward over %s ends with %v", name, err)
		}
	}
}
