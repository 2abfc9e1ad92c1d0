package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long a script waits for anything before it fails.
const patience = 3 * time.Minute

// shared is one environment for all scripts that need no more than a namespace in it.
var shared sharedEnvironment

type sharedEnvironment struct {
	once   sync.Once
	err    error
	dir    string
	cmd    *exec.Cmd
	stderr strings.Builder
	client kubernetes.Interface
}

func (e *sharedEnvironment) start() error {
	e.once.Do(func() { e.err = e.run() })
	return e.err
}

func (e *sharedEnvironment) run() (err error) {
	if e.dir, err = os.MkdirTemp("", "cli"); err != nil {
		return err
	}
	e.cmd = exec.Command("aiopslab", "up", "--kubeconfig", e.kubeconfig())
	e.cmd.Env = append(os.Environ(), "AIOPSLAB_TMPDIR="+e.dir)
	e.cmd.Stderr = &e.stderr
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := e.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Stop with") {
			config, err := clientcmd.BuildConfigFromFlags("", e.kubeconfig())
			if err != nil {
				return err
			}
			e.client, err = kubernetes.NewForConfig(config)
			return err
		}
	}
	return fmt.Errorf("it did not start: %s", e.stderr.String())
}

func (e *sharedEnvironment) kubeconfig() string { return filepath.Join(e.dir, "kubeconfig") }

// stop ends the environment, if it was started, and checks that it leaves nothing but what it was
// asked for.
func (e *sharedEnvironment) stop() error {
	if e.cmd == nil || e.cmd.Process == nil {
		return nil
	}
	defer os.RemoveAll(e.dir)
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := e.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, e.stderr.String())
	}
	left, err := filepath.Glob(filepath.Join(e.dir, "aiopslab-*"))
	if err != nil || len(left) > 0 {
		return fmt.Errorf("it left %v behind (%v)", left, err)
	}
	return nil
}

// namespace makes a namespace in which pods can be created, and writes a kubeconfig that points to
// it.
func (e *sharedEnvironment) namespace(name, kubeconfig string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := e.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	for {
		_, err := e.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return err
		}
	}
	c, err := clientcmd.LoadFromFile(e.kubeconfig())
	if err != nil {
		return err
	}
	c.Contexts[c.CurrentContext].Namespace = name
	return clientcmd.WriteToFile(*c, kubeconfig)
}

// remove deletes a namespace and does not wait for it.
func (e *sharedEnvironment) remove(name string) {
	_ = e.client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
}
