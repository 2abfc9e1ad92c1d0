package guard

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/nginx"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const (
	patience = labtest.Patience
	poll     = 50 * time.Millisecond
)

var lab labtest.Lab

func TestMain(m *testing.M) {
	tools := shell.Tools()
	lab.Main(m, labtest.Options{Images: []kit.Image{coredns.Image(), metricsserver.Image(), busybox.Image(tools), nginx.Image(tools), redis.Image(tools), mongo.Image(tools)}})
}

// agent is somebody behind a guard, with a namespace to work in.
type agent struct {
	guard      *guard.Guard
	ns         string
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface

	mu      sync.Mutex
	entries []guard.Entry
}

func newAgent(t *testing.T, hide ...guard.Rule) *agent {
	t.Helper()
	a := &agent{ns: fmt.Sprintf("shop-%d", time.Now().UnixNano()%1e9)}
	if _, err := lab.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	a.guard, err = guard.Start(t.Context(), guard.Options{Upstream: lab.Cloud.RESTConfig(), Direct: lab.Cloud.DirectConfig(), Revision: lab.Cloud.Revision, Keeper: lab.Cloud, Hide: hide, Journal: func(e guard.Entry) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.entries = append(a.entries, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	lab.Cloud.SetGate(&cloud.Gate{API: a.guard.Network(), Kubelet: a.guard.Kubelet})
	t.Cleanup(func() {
		lab.Cloud.SetGate(nil)
		if err := a.guard.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := a.guard.Kubeconfig(a.ns)
	if err != nil {
		t.Fatal(err)
	}
	a.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(a.kubeconfig, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if a.config, err = clientcmd.RESTConfigFromKubeConfig(b); err != nil {
		t.Fatal(err)
	}
	a.config.QPS = -1
	if a.client, err = kubernetes.NewForConfig(a.config); err != nil {
		t.Fatal(err)
	}
	return a
}

// journal returns the entries so far.
func (a *agent) journal() []guard.Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.entries)
}

// kubectl runs kubectl as the agent and returns what it printed.
func (a *agent) kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(lab.Bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.kubeconfig, "HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// run is kubectl that must succeed and print the given words.
func (a *agent) run(t *testing.T, stdin string, args []string, words ...string) string {
	t.Helper()
	out, err := a.kubectl(t, stdin, args...)
	if err != nil {
		t.Errorf("kubectl %v: %v\n%s", args, err, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("kubectl %v does not say %q:\n%s", args, w, out)
		}
	}
	return out
}

// labApplies applies manifests as the lab.
func labApplies(t *testing.T, ns, manifests string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply.Apply(t.Context(), ns, objects); err != nil {
		t.Fatal(err)
	}
	return objects
}

// ready waits until a pod is.
func ready(t *testing.T, ns, name string) *v1.Pod {
	t.Helper()
	return labtest.Await(t, func() (*v1.Pod, error) {
		p, err := lab.Client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
				return p, nil
			}
		}
		return nil, fmt.Errorf("%s is not ready: %+v", name, p.Status)
	})
}
