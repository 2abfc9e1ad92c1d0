package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	clusterNodes  = 3
	startPatience = 5 * time.Minute // many may be starting at once
	stopPatience  = 30 * time.Second
	// filePoll is how often the kubeconfig is looked for. It costs next to nothing.
	filePoll = time.Millisecond
	// probePoll is how often a starting API server is asked. Asking more often would slow it down.
	probePoll = 20 * time.Millisecond
)

// cluster is a control plane in a process of its own.
type cluster struct {
	cmd    *exec.Cmd
	client kubernetes.Interface
	up     time.Duration // from the start of the process until isUp
	upCPU  time.Duration // CPU time that took
	ready  firstWrite    // done when the process says on its stdout that all is up
	start  time.Time
	stderr bytes.Buffer  // to be read after the process has ended
	ended  chan struct{} // closed when it has
}

// firstWrite is a writer that closes a channel when something is written.
type firstWrite struct {
	once sync.Once
	done chan struct{}
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.once.Do(func() { close(f.done) })
	return len(p), nil
}

// startLab starts `aiopslab up` and waits until its API is ready, its controllers are synced and its
// nodes are Ready.
func (r *run) startLab(ctx context.Context) (*cluster, error) {
	dir, err := os.MkdirTemp(r.dir, "lab-")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	cmd := exec.Command(r.binary, "up", "--kubeconfig", kubeconfig)
	cmd.Env = append(os.Environ(), "AIOPSLAB_TMPDIR="+dir)
	return start(ctx, cmd, kubeconfig)
}

// startStock does the same with the stock control plane.
func (r *run) startStock(ctx context.Context) (*cluster, error) {
	dir, err := os.MkdirTemp(r.dir, "stock-")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, exec.Command(self, stockCommand, dir), filepath.Join(dir, "kubeconfig"))
}

func start(ctx context.Context, cmd *exec.Cmd, kubeconfig string) (*cluster, error) {
	c := &cluster{cmd: cmd, ready: firstWrite{done: make(chan struct{})}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &c.ready, &c.stderr
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	c.start = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	err := c.poll(ctx, filePoll, func() bool {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return false
		}
		config.QPS = -1
		c.client, err = kubernetes.NewForConfig(config)
		return err == nil
	})
	if err == nil {
		err = c.poll(ctx, probePoll, func() bool { return isUp(ctx, c.client) })
	}
	if err == nil {
		c.up = time.Since(c.start)
		c.upCPU, err = measure.CPUOf(c.pid())
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, lastLine(c.stderr.String()))
	}
	return c, nil
}

// waitReady waits for what the process starts after its control plane. It returns how long that took
// from the start of the process.
func (c *cluster) waitReady(ctx context.Context) (time.Duration, error) {
	select {
	case <-c.ready.done:
		return time.Since(c.start), nil
	case <-c.ended:
		return 0, errors.New("the process ended")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// poll waits for a condition as long as the process lives.
func (c *cluster) poll(ctx context.Context, every time.Duration, condition func() bool) error {
	for !condition() {
		select {
		case <-time.After(every):
		case <-c.ended:
			return errors.New("the process ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *cluster) pid() int { return c.cmd.Process.Pid }

// close ends the process and waits for it.
func (c *cluster) close() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(stopPatience):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// isUp reports whether an API server is ready, all nodes are Ready and known as such to the node
// controller, and the controllers of service accounts have made what pods need.
func isUp(ctx context.Context, c kubernetes.Interface) bool {
	if _, err := c.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return false
	}
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != clusterNodes {
		return false
	}
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 || !nodeReady(&n) {
			return false
		}
	}
	return namespaceUsable(ctx, c, metav1.NamespaceDefault)
}

func nodeReady(n *v1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// namespaceUsable reports whether pods can be created in a namespace.
func namespaceUsable(ctx context.Context, c kubernetes.Interface, ns string) bool {
	_, err1 := c.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
	_, err2 := c.CoreV1().ConfigMaps(ns).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return err1 == nil && err2 == nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
