package whisk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// cluster is a controller with actions whose pods are machines in memory: what kubelets and controllers do is done by
// kubelet, whenever a Deployment is scaled.
type cluster struct {
	t      *testing.T
	w      *kittest.World
	api    *fake.Clientset
	user   *kittest.Machine
	action kit.Program

	mu   sync.Mutex
	made int
	pods map[string][]*kittest.Run // by action

	deny atomic.Pointer[apierrors.StatusError] // of scaling
}

// start starts a controller with some actions, none of which has a pod.
func start(t *testing.T, vars map[string]string, run func(ctx context.Context, in *Input) (any, error), names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, w: kittest.New(t), api: fake.NewClientset(), pods: map[string][]*kittest.Run{}}
	c.user = c.w.Machine("user", "10.244.9.9")
	c.action = func(ctx context.Context, env *kit.Env) error {
		s, err := service.New(ctx, env, service.Config{Name: env.Args[1]})
		if err != nil {
			return err
		}
		defer s.Close()
		return Serve(ctx, s, Program{Name: env.Args[1], Run: run})
	}
	for _, name := range names {
		_, err := c.api.AppsV1().Deployments("ns").Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "ns", Labels: map[string]string{Label: name},
				Annotations: map[string]string{concurrency: "2", maxInstances: "2"},
			},
			Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0)},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.api.PrependReactor("patch", "deployments", func(a ktesting.Action) (bool, runtime.Object, error) {
		// The API is locked here, and kubelet asks it with mu held: who locked mu now might wait for ever.
		if err := c.deny.Load(); err != nil {
			return true, nil, err
		}
		return false, nil, nil
	})
	watching, err := c.api.AppsV1().Deployments("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range watching.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok {
				c.kubelet(d)
			}
		}
	})
	t.Cleanup(func() { watching.Stop(); wg.Wait() })
	c.control("controller", "10.244.0.1", vars)
	return c
}

// control starts a controller.
func (c *cluster) control(name, address string, vars map[string]string) *kittest.Run {
	m := c.w.Machine(name, address)
	m.Vars = vars
	run := m.Start(func(ctx context.Context, env *kit.Env) error {
		s, err := service.New(ctx, env, service.Config{Name: "controller"})
		if err != nil {
			return err
		}
		defer s.Close()
		return Run(ctx, s, c.api, "ns")
	}, "controller")
	c.t.Cleanup(func() { run.Signal(syscall.SIGKILL); run.Wait() })
	m.WaitListen(":" + Port)
	return run
}

// kubelet makes the pods of an action as many as it wants.
func (c *cluster) kubelet(d *appsv1.Deployment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := c.api.CoreV1().Pods("ns")
	for len(c.pods[d.Name]) < int(*d.Spec.Replicas) {
		c.made++
		name, address := fmt.Sprintf("%s-%d", d.Name, c.made), fmt.Sprintf("10.244.1.%d", c.made)
		m := c.w.Machine(name, address)
		run := m.Start(c.action, "action", d.Name)
		c.t.Cleanup(func() { run.Signal(syscall.SIGKILL); run.Wait() })
		m.WaitListen(fmt.Sprintf(":%d", RuntimePort))
		c.pods[d.Name] = append(c.pods[d.Name], run)
		_, _ = pods.Create(context.Background(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), Labels: map[string]string{Label: d.Name}},
			Status: v1.PodStatus{
				PodIP: address, Phase: v1.PodRunning,
				Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
			},
		}, metav1.CreateOptions{})
	}
	for n := len(c.pods[d.Name]); n > int(*d.Spec.Replicas); n-- {
		run := c.pods[d.Name][n-1]
		c.pods[d.Name] = c.pods[d.Name][:n-1]
		list, _ := pods.List(context.Background(), metav1.ListOptions{LabelSelector: Label + "=" + d.Name})
		_ = pods.Delete(context.Background(), list.Items[len(list.Items)-1].Name, metav1.DeleteOptions{})
		run.Signal(syscall.SIGTERM)
	}
}

func (c *cluster) replicas(name string) int {
	d, err := c.api.AppsV1().Deployments("ns").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return int(*d.Spec.Replicas)
}

func (c *cluster) await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (c *cluster) ask(method, path, body string) kittest.Answer {
	return kittest.Ask(c.t, c.user, method, "http://controller:"+Port+"/api/v1/namespaces/_/"+path, body)
}

// echo returns what it was given.
func echo(_ context.Context, in *Input) (any, error) {
	in.Logf("hello")
	if strings.Contains(string(in.Params), "fail") {
		return nil, Refusal("it does not want to")
	}
	return map[string]json.RawMessage{"got": in.Params}, nil
}

// An action without pods is started, is warm then, and goes when nobody needs it.
func TestFromZeroAndBack(t *testing.T) {
	c := start(t, map[string]string{"IDLE_TIMEOUT": "1s"}, echo, "echo", "other")
	r := c.ask("POST", "actions/echo?blocking=true", `{"x": 1}`)
	var a Activation
	if err := json.Unmarshal([]byte(r.Body), &a); err != nil || r.Code != http.StatusOK {
		t.Fatalf("%d %s", r.Code, r.Body)
	}
	if string(a.Response.Result) != `{"got":{"x":1}}` || !a.Response.Success || len(a.Logs) != 1 || !isCold(a.Annotations[3]) {
		t.Errorf("%+v", a)
	}
	r = c.ask("POST", "actions/echo?blocking=true&result=true", "")
	if r.Code != http.StatusOK || strings.TrimSpace(r.Body) != `{"got":{}}` {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	if n := c.replicas("other"); n != 0 {
		t.Errorf("an action that nobody invoked has %d pods", n)
	}
	for _, path := range []string{"activations/" + a.ID, "activations?limit=5&name=echo"} {
		if r := c.ask("GET", path, ""); r.Code != http.StatusOK || !strings.Contains(r.Body, a.ID) {
			t.Errorf("%s: %d %s", path, r.Code, r.Body)
		}
	}
	if r := c.ask("GET", "activations/"+a.ID+"/logs", ""); !strings.Contains(r.Body, "stdout: hello") {
		t.Errorf("%s", r.Body)
	}
	c.await("the action to go", func() bool { return c.replicas("echo") == 0 })
	if r := c.ask("POST", "actions/echo?blocking=true&result=true", ""); r.Code != http.StatusOK {
		t.Errorf("%d %s", r.Code, r.Body)
	}
}

// What can be wrong with a request.
func TestRefusals(t *testing.T) {
	c := start(t, nil, echo, "echo")
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "actions/nosuch?blocking=true", "", 404, "does not exist"},
		{"POST", "actions/echo?blocking=true", "[1]", 400, "want a JSON object"},
		{"POST", "actions/echo?blocking=true", "null", 400, "want a JSON object"},
		{"POST", "actions/echo?blocking=true", `{"x": "` + strings.Repeat("x", maxBody) + `"}`, 413, "longer than"},
		{"POST", "actions/echo?blocking=true&result=true", `{"fail": 1}`, 502, `{"error":"it does not want to"}`},
		{"POST", "actions/echo", "", 202, "activationId"},
		{"GET", "actions/echo", "", 200, `"concurrency":2`},
		{"GET", "actions", "", 200, `"name":"echo"`},
		{"GET", "actions/nosuch", "", 404, "does not exist"},
		{"GET", "activations/nosuch", "", 404, "does not exist"},
		{"GET", "activations?limit=many", "", 400, "limit must be"},
		{"GET", "activations?limit=100000", "", 400, "limit must be"},
	} {
		if r := c.ask(tt.method, tt.path, tt.body); r.Code != tt.status || !strings.Contains(r.Body, tt.want) {
			t.Errorf("%s %s: %d %.200s", tt.method, tt.path, r.Code, r.Body)
		}
	}
	r := kittest.Ask(t, c.user, "GET", "http://controller:"+Port+"/api/v1/namespaces/someone/actions", "")
	if r.Code != http.StatusForbidden {
		t.Errorf("%d %s", r.Code, r.Body)
	}
}

// With more to do than a pod takes, an action gets more pods, up to its limit, and too many invocations are turned away.
func TestManyAtOnce(t *testing.T) {
	held := make(chan struct{})
	c := start(t, nil, func(ctx context.Context, in *Input) (any, error) {
		select {
		case <-held:
		case <-ctx.Done():
		}
		return map[string]bool{"ok": true}, nil
	}, "slow")
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	codes := map[int]int{}
	for range 2*2 + maxWaiting + 5 {
		wg.Go(func() {
			r := c.ask("POST", "actions/slow?blocking=true", "")
			mu.Lock()
			defer mu.Unlock()
			codes[r.Code]++
		})
	}
	c.await("two pods, and invocations that are turned away", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return c.replicas("slow") == 2 && codes[http.StatusTooManyRequests] >= 5
	})
	close(held)
	wg.Wait()
	if n := 4 + maxWaiting + 5; codes[http.StatusOK] < maxWaiting || codes[http.StatusOK]+codes[http.StatusTooManyRequests] != n {
		t.Errorf("%v", codes)
	}
}

// Who may not scale says so at once.
func TestMayNotScale(t *testing.T) {
	c := start(t, nil, echo, "echo")
	c.deny.Store(apierrors.NewForbidden(appsv1.Resource("deployments"), "echo", errors.New("no right")))
	r := c.ask("POST", "actions/echo?blocking=true&result=true", "")
	if r.Code != http.StatusBadGateway || !strings.Contains(r.Body, "forbidden") {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	c.deny.Store(nil)
	c.await("the action", func() bool { return c.ask("POST", "actions/echo?blocking=true", "").Code == http.StatusOK })
}

// Another controller knows what the first one did, and users of one that goes are served.
func TestTwoControllers(t *testing.T) {
	w := map[string]string{"REDIS_ADDRESS": "redis:6379"}
	c := start(t, w, echo, "echo")
	m := c.w.Machine("redis", "10.244.0.9")
	store := m.Start(redis.Main, "redis-server", "--save", "")
	t.Cleanup(func() { store.Signal(syscall.SIGKILL); store.Wait() })
	m.WaitListen(":6379")
	r := c.ask("POST", "actions/echo?blocking=true", "")
	var a Activation
	if err := json.Unmarshal([]byte(r.Body), &a); err != nil {
		t.Fatalf("%d %s", r.Code, r.Body)
	}
	c.control("second", "10.244.0.2", w)
	c.await("the other's activation", func() bool {
		r := kittest.Ask(t, c.user, "GET", "http://second:"+Port+"/api/v1/namespaces/_/activations/"+a.ID, "")
		return r.Code == http.StatusOK && strings.Contains(r.Body, a.ID)
	})
}

// What is remembered is bounded, and what failed is remembered for longer.
func TestStore(t *testing.T) {
	st := newStore(nil, nil)
	for i := range keptRecent + keptFailed + 100 {
		a := begin("x", "", time.UnixMilli(int64(i)))
		a.Response.Success = i%100 != 0
		st.add(a)
	}
	if len(st.recent) != keptRecent || len(st.byID) > keptRecent+keptFailed {
		t.Errorf("%d, %d, %d", len(st.recent), len(st.failed), len(st.byID))
	}
	if list := st.list("", 0, 1<<20); len(list) != keptRecent+5 || list[len(list)-1].Start != 0 {
		t.Errorf("%d are listed", len(list))
	}
	if list := st.list("y", 0, 10); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if list := st.list("x", 2, 3); len(list) != 3 || list[0].Start != keptRecent+keptFailed+100-3 {
		t.Errorf("%v", list)
	}
}

// FuzzRun sends a pod whatever somebody may.
func FuzzRun(f *testing.F) {
	f.Add([]byte(`{"value": {}, "deadline": 1}`))
	f.Add([]byte(`{"value": null, "activation_id": "x"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &runtimeServer{ready: true, p: Program{Run: echo}}
		w := &discard{header: http.Header{}}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/run", strings.NewReader(string(body)))
		r.run(w, req)
		if w.code != http.StatusOK && w.code != http.StatusBadRequest && w.code != http.StatusBadGateway {
			t.Errorf("%d", w.code)
		}
	})
}

type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(code int)        { d.code = code }

// A pod that cannot be initialised is no idle one, as long as somebody wants it, and is tried again.
func TestFailedInitIsUse(t *testing.T) {
	m := kittest.New(t).Machine("pod", "10.244.1.1")
	failing := errors.New("no store")
	run := m.Start(func(ctx context.Context, env *kit.Env) error {
		s, err := service.New(ctx, env, service.Config{Name: "x"})
		if err != nil {
			return err
		}
		defer s.Close()
		r := &runtimeServer{s: s}
		var waiting sync.WaitGroup
		other, inits := &discard{header: http.Header{}}, 0
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/init", nil)
		if err != nil {
			return err
		}
		came := make(chan struct{})
		r.p = Program{Name: "x", Init: func(context.Context) error {
			if inits++; inits == 1 {
				waiting.Go(func() {
					close(came)
					r.init(other, req)
				})
				<-came
			}
			return failing
		}}
		w := &discard{header: http.Header{}}
		r.init(w, req)
		waiting.Wait()
		if w.code != http.StatusBadGateway || other.code != http.StatusBadGateway || r.last.IsZero() || r.ready || inits > 2 {
			return fmt.Errorf("%d, %d, %v, %v after %d", w.code, other.code, r.last, r.ready, inits)
		}
		failing = nil
		r.init(w, req)
		if w.code != http.StatusOK || !r.ready {
			return fmt.Errorf("%d", w.code)
		}
		return nil
	}, "x")
	if code := run.Wait(); code != 0 {
		t.Errorf("%d %s", code, run.Stderr)
	}
}
