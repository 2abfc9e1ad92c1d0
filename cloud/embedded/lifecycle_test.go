package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
)

// A cloud that is closed leaves nothing behind: no files, no listener, no goroutine of ours.
func TestCloseLeavesNothing(t *testing.T) {
	c := fresh(t, embedded.Options{})
	must(t, c.WaitReady(t.Context()))
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(front, "one"))
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
