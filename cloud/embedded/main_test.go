package embedded_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/e2e/agnhost"
	"github.com/aiopslab/aiopslab/image/e2e/resourceconsumer"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/nginx"
	"github.com/aiopslab/aiopslab/image/pause"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// A process holds one cloud at a time. Tests that damage theirs, or want special options, are not
// parallel and start their own with fresh. The others are parallel, so they run after those, and
// share one cloud, each in a namespace of its own.

const (
	// patience is how long a condition may take to come about. It is long because the machine may be
	// busy; a test that passes does not wait for it.
	patience = 2 * time.Minute
	poll     = 20 * time.Millisecond
	// parallel is how many tests share the cloud at a time. Most of them wait most of the time.
	parallel = 12

	agnhostImage = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"
	pauseImage   = "registry.k8s.io/pause:3.10"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(parallel)); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, "close the shared cloud:", err)
		code = 1
	}
	os.Exit(code)
}

// images are what the tests' pods are made of.
var images = sync.OnceValue(func() *kit.Registry {
	tools := shell.Tools()
	return kit.NewRegistry(append(campaignImages(),
		coredns.Image(), metricsserver.Image(), pause.Image(), busybox.Image(tools), nginx.Image(tools),
		agnhost.Image(tools), resourceconsumer.Image(tools),
	)...)
})

// cluster is a cloud and clients that talk to it over TCP, as anybody's do.
type cluster struct {
	*embedded.Cloud
	config  *rest.Config
	client  *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	mapper  meta.ResettableRESTMapper
}

func connect(c *embedded.Cloud) (*cluster, error) {
	b, err := c.Kubeconfig("test")
	if err != nil {
		return nil, err
	}
	k := &cluster{Cloud: c}
	if k.config, err = clientcmd.RESTConfigFromKubeConfig(b); err != nil {
		return nil, err
	}
	k.config.QPS = -1
	if k.client, err = kubernetes.NewForConfig(k.config); err != nil {
		return nil, err
	}
	if k.dynamic, err = dynamic.NewForConfig(k.config); err != nil {
		return nil, err
	}
	k.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.client.Discovery()))
	return k, nil
}

// fresh starts a cloud for a test that is not parallel.
func fresh(t *testing.T, opts embedded.Options) *cluster {
	t.Helper()
	if err := closeShared(); err != nil {
		t.Fatal(err)
	}
	opts.Images, opts.Commands, opts.Dir = images(), shell.Node(), t.TempDir()
	c, err := embedded.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	k, err := connect(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sharedCloud is the cloud of the parallel tests; nil until the first of them wants it.
var sharedCloud struct {
	mu sync.Mutex
	c  *cluster
}

// shared returns the cloud of the parallel tests with its add-ons up.
func shared(t *testing.T) *cluster {
	t.Helper()
	sharedCloud.mu.Lock()
	defer sharedCloud.mu.Unlock()
	if sharedCloud.c == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := embedded.Start(ctx, embedded.Options{
			Images: images(), Commands: shell.Node(),
			Timing: controlplane.Timing{AutoscalerSync: 500 * time.Millisecond, AutoscalerCPUInitialization: time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		if sharedCloud.c, err = connect(c); err == nil {
			err = c.WaitReady(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return sharedCloud.c
}

func closeShared() error {
	sharedCloud.mu.Lock()
	defer sharedCloud.mu.Unlock()
	c := sharedCloud.c
	sharedCloud.c = nil
	if c == nil {
		return nil
	}
	return c.Close()
}

// await calls check until it returns no error, and returns its value. The last error, which says
// what is lacking, is what the test fails with.
func await[T any](t *testing.T, check func() (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		v, err := check()
		if err == nil {
			return v
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			t.Fatalf("gave up waiting: %v", err)
		}
	}
}

// awaitTrue is await for a condition without a value.
func awaitTrue(t *testing.T, what string, check func() bool) {
	t.Helper()
	await(t, func() (none struct{}, err error) {
		if !check() {
			err = errors.New(what + " does not hold")
		}
		return none, err
	})
}

// awaitGone returns when get says that there is no such object.
func awaitGone[T any](t *testing.T, what string, get func() (T, error)) {
	t.Helper()
	awaitTrue(t, what+" is gone", func() bool {
		_, err := get()
		return apierrors.IsNotFound(err)
	})
}

// namespace creates a namespace for the test and returns its name. It stays: to delete one costs more
// than to let its pods be until the cloud is closed.
func (c *cluster) namespace(t *testing.T) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	ns, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// There can be no pods before there is an account for them.
	await(t, func() (*v1.ServiceAccount, error) {
		return c.client.CoreV1().ServiceAccounts(ns.Name).Get(t.Context(), "default", metav1.GetOptions{})
	})
	return ns.Name
}

// apply does what kubectl apply --server-side does. A manifest without a namespace is for ns.
func (c *cluster) apply(t *testing.T, ns, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, manifest)
		}
		if len(o.Object) == 0 {
			continue
		}
		out, err := c.applyObject(t.Context(), ns, o)
		if err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		list = append(list, out)
	}
}

func (c *cluster) applyObject(ctx context.Context, ns string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := o.GroupVersionKind()
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	r := c.dynamic.Resource(m.Resource)
	opts := metav1.ApplyOptions{FieldManager: "test", Force: true}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return r.Apply(ctx, o.GetName(), o, opts)
	}
	if n := o.GetNamespace(); n != "" {
		ns = n
	}
	return r.Namespace(ns).Apply(ctx, o.GetName(), o, opts)
}

// pods returns the pods of a namespace that match a selector, once n of them are ready and there are
// no others.
func (c *cluster) readyPods(t *testing.T, ns, selector string, n int) []v1.Pod {
	t.Helper()
	return await(t, func() ([]v1.Pod, error) {
		list, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		var states []string
		ready := 0
		for _, p := range list.Items {
			state := string(p.Status.Phase)
			if isReady(&p) && p.DeletionTimestamp == nil {
				ready++
				state = "Ready"
			}
			states = append(states, p.Name+" "+state)
		}
		if ready != n || len(list.Items) != n {
			return nil, fmt.Errorf("%d of %d pods with %s are ready: %s", ready, n, selector, strings.Join(states, ", "))
		}
		return list.Items, nil
	})
}

func isReady(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// awaitPod returns a pod once it satisfies a condition.
func (c *cluster) awaitPod(t *testing.T, ns, name, what string, ok func(*v1.Pod) bool) *v1.Pod {
	t.Helper()
	return await(t, func() (*v1.Pod, error) {
		p, err := c.client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !ok(p) {
			err = fmt.Errorf("pod %s: not %s: %+v", name, what, p.Status.ContainerStatuses)
		}
		return p, err
	})
}

// exec runs a command in a pod's first container and returns what it printed.
func (c *cluster) exec(t *testing.T, ns, pod string, argv ...string) string {
	t.Helper()
	out, err := c.tryExec(t.Context(), ns, pod, argv...)
	if err != nil {
		t.Fatalf("exec %v in %s: %v: %s", argv, pod, err, out)
	}
	return out
}

func (c *cluster) tryExec(ctx context.Context, ns, pod string, argv ...string) (string, error) {
	u := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(ns).Name(pod).SubResource("exec").
		VersionedParams(&v1.PodExecOptions{Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	e, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, u.String())
	if err != nil {
		return "", err
	}
	out := &lines{}
	err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: out})
	return out.String(), err
}

// httpClient returns a client that is in the cluster's network. It opens a connection per request.
func (c *cluster) httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
}

// fetch gets a page from inside the cluster.
func (c *cluster) fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := c.httpClient().Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, res.Status, b)
	}
	return string(b), err
}

// awaitFetch gets a page once it is there.
func (c *cluster) awaitFetch(t *testing.T, url string) string {
	t.Helper()
	return await(t, func() (string, error) { return c.fetch(t.Context(), url) })
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// lines is a buffer that several may write and read at the same time.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
