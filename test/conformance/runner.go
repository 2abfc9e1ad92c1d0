package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupTimeout bounds one group. The slowest spec waits ten minutes for etcd to be compacted.
const groupTimeout = 3 * time.Hour

// runner builds the suite and runs groups of it.
type runner struct {
	dir     string // for what is built and written
	product string // the binary under test
	procs   int
	focus   string
}

// build makes the suite and Ginkgo's runner unless they are there for the module's versions.
func (r *runner) build(ctx context.Context, progress io.Writer) error {
	if _, err := os.Stat(r.product); err != nil {
		return fmt.Errorf("%s is missing; start it by test/conformance/run, which builds it", r.product)
	}
	version, err := goCommand(ctx, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	r.dir = filepath.Join(r.dir, version)
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	if r.product, err = filepath.Abs(r.product); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.dir, name), data, 0o644); err != nil {
			return err
		}
	}
	module := []string{"-modfile=" + filepath.Join(r.dir, "go.mod"), "-mod=mod"}
	for _, b := range []struct {
		name string
		args []string
		pkg  string
	}{
		{"ginkgo", []string{"build"}, "github.com/onsi/ginkgo/v2/ginkgo"},
		{
			"e2e.test",
			[]string{"test", "-c", "-vet=off", "-ldflags=-s -w " + stamp(version)},
			"k8s.io/kubernetes/test/e2e",
		},
	} {
		out := filepath.Join(r.dir, b.name)
		if _, err := os.Stat(out); err == nil {
			continue
		}
		fmt.Fprintf(progress, "Building %s %s (once; some minutes)\n", b.pkg, version)
		args := append(append(b.args, module...), "-o", out, b.pkg)
		if _, err := goCommand(ctx, args...); err != nil {
			return err
		}
	}
	// kubectl is the product by another name.
	kubectl := filepath.Join(r.dir, "kubectl")
	if err := os.Remove(kubectl); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(r.product, kubectl)
}

// stamp tells the linker what version the suite is of: specs pick fixtures by it.
func stamp(version string) string {
	const pkg = "k8s.io/component-base/version"
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, version, major,
		minor)
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// file names a file of a group's.
func (r *runner) file(group, suffix string) string { return filepath.Join(r.dir, group+suffix) }

// run runs the specs of one group in an environment of their own.
func (r *runner) run(ctx context.Context, group string) (summary, error) {
	focus := `\[` + group + `\].*` + r.focus + `.*\[Conformance\]`
	report := r.file(group, ".json")
	if err := os.Remove(report); err != nil && !os.IsNotExist(err) {
		return summary{}, err
	}
	log, err := os.Create(r.file(group, ".log"))
	if err != nil {
		return summary{}, err
	}
	defer log.Close()
	tmp, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return summary{}, err
	}
	defer os.RemoveAll(tmp)
	kubeconfig := filepath.Join(tmp, "kubeconfig")
	kubectl := filepath.Join(r.dir, "kubectl")
	c := exec.CommandContext(ctx, r.product, "up", "--kubeconfig", kubeconfig, "--",
		filepath.Join(r.dir, "ginkgo"), "--procs="+strconv.Itoa(r.procs), "--no-color",
		"--timeout="+groupTimeout.String(), "--focus="+focus, "--json-report="+filepath.Base(report),
		"--output-dir="+r.dir, filepath.Join(r.dir, "e2e.test"), "--",
		"--provider=skeleton", "--kubeconfig="+kubeconfig, "--kubectl-path="+kubectl, "--num-nodes=3",
		"--disable-log-dump")
	c.Env = append(os.Environ(), "PATH="+r.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	c.Stdout, c.Stderr = log, log
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	start := time.Now()
	runErr := c.Run() // Fails if a spec does, which the report tells better.
	s, err := readReport(report, focus)
	s.took = time.Since(start)
	if err != nil {
		return s, fmt.Errorf("%w (exit: %v; see %s)", err, runErr, log.Name())
	}
	return s, nil
}
