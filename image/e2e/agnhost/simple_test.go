package agnhost

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
)

func TestEntrypointTester(t *testing.T) {
	m := pod(t)
	// The suite runs the second name of the program, too.
	r := m.Start(Main, "/agnhost-2", "entrypoint-tester", "override", "arguments")
	if code := r.Wait(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if diff := cmp.Diff("[/agnhost-2 entrypoint-tester override arguments]\n", r.Stdout.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDNS(t *testing.T) {
	m := pod(t)
	m.Write("/etc/resolv.conf", "nameserver 1.1.1.1\nsearch resolv.conf.local cluster.local\noptions ndots:2\n")
	m.Write("/etc/hosts", "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
	tests := []struct{ command, want string }{
		{"dns-suffix", "resolv.conf.local,cluster.local\n"},
		{"dns-server-list", "1.1.1.1\n"},
		{"etc-hosts", "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n\n"},
	}
	for _, tt := range tests {
		stdout, stderr, code := output(m, tt.command)
		if code != 0 || stdout != tt.want {
			t.Errorf("%s: exit %d, printed %q, want %q\n%s", tt.command, code, stdout, tt.want, stderr)
		}
	}
	m.Write("/etc/resolv.conf", "")
	if _, stderr, code := output(m, "dns-suffix"); code != 1 || !strings.Contains(stderr, "search") {
		t.Errorf("without a search list: exit %d, %s", code, stderr)
	}
}

func TestPause(t *testing.T) {
	tests := []struct {
		sig  syscall.Signal
		name string
		code int
	}{{syscall.SIGTERM, "terminated", 2}, {syscall.SIGINT, "interrupt", 1}}
	for _, tt := range tests {
		m := pod(t)
		m.Write("/dev/termination-log", "")
		r := start(m, "pause")
		r.Await("Paused\n")
		r.Signal(tt.sig)
		if code := r.Wait(); code != tt.code {
			t.Errorf("%v: exit %d, want %d", tt.sig, code, tt.code)
		}
		want := `ended by signal "` + tt.name + "\"\n"
		if got := m.Read("/dev/termination-log"); got != want || !strings.HasSuffix(r.Stdout.String(), want) {
			t.Errorf("%v: message %q, output %q", tt.sig, got, r.Stdout)
		}
	}
}

func TestPauseIgnoresHarmlessSignals(t *testing.T) {
	r := start(pod(t), "pause")
	r.Await("Paused")
	r.Signal(syscall.SIGWINCH)
	r.Signal(syscall.SIGHUP)
	if code := r.Wait(); code != kit.ExitSignal+int(syscall.SIGHUP) {
		t.Errorf("exit %d, want that of SIGHUP", code)
	}
}

func TestLogsGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := start(pod(t), "logs-generator", "--log-lines-total", "100", "--run-duration", "4s")
		if code := r.Wait(); code != 0 {
			t.Fatalf("exit %d", code)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
		lines := strings.Split(strings.TrimSuffix(r.Stderr.String(), "\n"), "\n")
		if len(lines) != 100 {
			t.Errorf("%d lines", len(lines))
		}
		format := regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d 99 GET /api/v1/namespaces/[a-z-]+/pods/pod-\w{4} [2-4]\d\d$`)
		if last := lines[len(lines)-1]; !format.MatchString(last) {
			t.Errorf("the last line is %q", last)
		}
		// The conformance suite waits for this one.
		if !strings.Contains(r.Stderr.String(), "/api/v1/namespaces/kube-system") {
			t.Error("no line about kube-system")
		}
	})
}

func TestLogsGeneratorWantsNumbers(t *testing.T) {
	_, stderr, code := output(pod(t), "logs-generator", "-t", "0")
	if code != 1 || !strings.Contains(stderr, "--log-lines-total") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		r := start(m, "stress", "--mem-total", "1Mi", "--mem-alloc-size", "256Ki", "--mem-alloc-sleep", "1s", "--cpus", "2")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if held := m.Resources.Memory(); held != 1<<20 {
			t.Errorf("it holds %d bytes", held)
		}
		if used := m.Resources.Info().Used; used < 19*time.Second || used > 21*time.Second {
			t.Errorf("two cores used %v in 10s", used)
		}
		if !strings.Contains(r.Stderr.String(), "holding 1048576 bytes") {
			t.Error(r.Stderr)
		}
		r.Signal(syscall.SIGTERM)
		r.Wait()
	})
}
