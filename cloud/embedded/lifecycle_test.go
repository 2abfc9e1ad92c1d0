package embedded_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
)

// A cloud whose API is served in its own network alone has no port on the host, and works all the same.
func TestInward(t *testing.T) {
	c, err := embedded.Start(t.Context(), embedded.Options{Images: images(), Inward: true, Nodes: 1})
	must(t, err)
	defer c.Close()
	must(t, c.WaitReady(t.Context()))
	if c.Address() != "" {
		t.Errorf("it listens at %s", c.Address())
	}
	if b, err := c.Kubeconfig("outside"); err == nil {
		t.Errorf("who is outside is told of %s", b)
	}
	conn, err := c.Dial(t.Context(), "tcp", "kubernetes.default:443")
	must(t, err)
	must(t, conn.Close())
	must(t, c.Close())
}

// A cloud that is closed leaves nothing behind: no files, no listener, no goroutine of ours.
func TestCloseLeavesNothing(t *testing.T) {
	c := fresh(t, embedded.Options{})
	must(t, c.WaitReady(t.Context()))
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(front, "one", 1))
	c.readyPods(t, ns, "app=front", 3)
	// A program that does not want to end has no say.
	c.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: stubborn, labels: {app: stubborn}}
spec:
  terminationGracePeriodSeconds: 3600
  containers: [{name: main, image: busybox, command: [sh, -c, "trap '' TERM; while true; do sleep 1; done"]}]
`)
	c.readyPods(t, ns, "app=stubborn", 1)
	address := c.Address()
	must(t, c.Close())
	must(t, c.Close()) // It may be called more than once.
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", c.Dir(), err)
	}
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the API's port still answers: %v", err)
		if err == nil {
			conn.Close()
		}
	}
	await(t, func() (none struct{}, err error) {
		if left := ourGoroutines(); len(left) > 0 {
			err = fmt.Errorf("%d goroutines are left, the first is\n%s", len(left), left[0])
		}
		return none, err
	})
}

var ourCode = regexp.MustCompile(`(?m)^github\.com/aiopslab/aiopslab/|^created by github\.com/aiopslab/aiopslab/`)

// ourGoroutines returns the stacks of goroutines that run, or were started by, the module's code,
// tests aside. Kubernetes leaves some of its own.
func ourGoroutines() (stacks []string) {
	b := make([]byte, 64<<20)
	b = b[:runtime.Stack(b, true)]
	for g := range bytes.SplitSeq(b, []byte("\n\n")) {
		if s := string(g); ourCode.MatchString(s) && !strings.Contains(s, "embedded_test.") {
			stacks = append(stacks, s)
		}
	}
	return stacks
}

// childVar tells the test binary to be the second environment of TestTwoAtOnce.
const childVar = "EMBEDDED_TEST_CHILD"

// Environments run side by side, each in a process of its own, and know nothing of each other.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSecondEnvironment$")
	cmd.Env = append(os.Environ(), childVar+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var kubeconfig []byte
	must(t, json.NewDecoder(stdout).Decode(&kubeconfig))
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	other, err := kubernetes.NewForConfig(config)
	must(t, err)
	nodes, err := other.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(nodes.Items) != 1 {
		t.Errorf("the other environment has %d nodes, want 1", len(nodes.Items))
	}
	if _, err := other.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other environment has this one's namespace: %v", err)
	}
	// Neither takes the other's credentials.
	config.Host = c.config.Host
	config.CAData = c.config.CAData
	stranger, err := kubernetes.NewForConfig(config)
	must(t, err)
	if _, err := stranger.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("another environment's administrator: %v, want unauthorized", err)
	}
	must(t, stdin.Close())
	if err := cmd.Wait(); err != nil {
		t.Errorf("the other environment: %v", err)
	}
}

// TestSecondEnvironment is the other process of TestTwoAtOnce.
func TestSecondEnvironment(t *testing.T) {
	dir := os.Getenv(childVar)
	if dir == "" {
		t.Skip("only TestTwoAtOnce runs it")
	}
	c, err := embedded.Start(t.Context(), embedded.Options{Images: images(), Dir: dir, Nodes: 1})
	must(t, err)
	defer c.Close()
	b, err := c.Kubeconfig("second")
	must(t, err)
	must(t, json.NewEncoder(os.Stdout).Encode(b))
	_, _ = io.Copy(io.Discard, os.Stdin) // Until the parent has seen enough.
}

// What cannot work is refused in one line, and leaves nothing behind.
func TestStartRefuses(t *testing.T) {
	must(t, closeShared())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	for name, tt := range map[string]struct {
		opts embedded.Options
		want string
	}{
		"no images":      {embedded.Options{}, "no images are registered"},
		"too many nodes": {embedded.Options{Images: images(), Nodes: 101}, "a cluster has 1 to 100 nodes, not 101"},
		"other nodes":    {embedded.Options{Images: images(), Nodes: 3, Snapshot: &embedded.Snapshot{Nodes: make([]node.State, 5)}}, "the snapshot has 5 nodes, not 3"},
		"port in use":    {embedded.Options{Images: images(), Listen: taken.Addr().String()}, "listen for the Kubernetes API: listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		"no directory":   {embedded.Options{Images: images(), Dir: "/no/such/dir"}, "mkdir /no/such/dir/controlplane: no such file or directory"},
		"bad address":    {embedded.Options{Images: images(), Listen: "nonsense"}, "listen for the Kubernetes API: listen tcp: address nonsense: missing port in address"},
	} {
		dir := t.TempDir()
		if tt.opts.Dir == "" {
			tt.opts.Dir = dir
		}
		c, err := embedded.Start(t.Context(), tt.opts)
		if err == nil {
			c.Close()
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %s is left", name, left[0].Name())
		}
	}
}
