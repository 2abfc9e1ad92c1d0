package agnhost

import (
	"context"
	"crypto/tls"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod returns a machine with the image on it.
func pod(t testing.TB) *kittest.Machine {
	t.Helper()
	m := kittest.New(t).Machine("pod-1", "10.244.0.2")
	m.Install(Image(nil))
	return m
}

// start runs a sub-command.
func start(m *kittest.Machine, args ...string) *kittest.Run {
	return m.Start(Main, append([]string{"/agnhost"}, args...)...)
}

// output runs a sub-command to its end and returns what it printed.
func output(m *kittest.Machine, args ...string) (stdout, stderr string, code int) {
	r := start(m, args...)
	code = r.Wait()
	return r.Stdout.String(), r.Stderr.String(), code
}

// get fetches a page and returns its status and content.
func get(t testing.TB, m *kittest.Machine, url string) (int, string) {
	t.Helper()
	a := kittest.Get(t, m, url)
	return a.Code, a.Body
}

func TestCommandLine(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		stdout, stderr string
		code           int
	}{
		{"no sub-command prints help", nil, "Available Commands:", "", 0},
		{"version", []string{"--version"}, "app version 2.66.1", "", 0},
		{"unknown sub-command", []string{"frobnicate"}, "", `Error: unknown command "frobnicate" for "app"`, 1},
		{"unknown flag", []string{"pause", "--frobnicate"}, "", "Error: unknown flag: --frobnicate", 1},
		{"argument too many", []string{"pause", "2>&1"}, "", "Error: accepts at most 0 arg(s), received 1", 1},
		// The e2e suite gives -v=4 to everything that logs.
		{"verbosity", []string{"entrypoint-tester", "-v=4"}, "[/agnhost entrypoint-tester -v=4]\n", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := output(pod(t), tt.args...)
			if !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) || code != tt.code {
				t.Errorf("exit %d, want %d\nstdout: %s\nstderr: %s", code, tt.code, stdout, stderr)
			}
		})
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	m := pod(t)
	for _, c := range newProgram(m.Env("/agnhost")).commands() {
		stdout, _, code := output(m, c.Name(), "--help")
		if code != 0 || !strings.Contains(stdout, "app "+c.Name()) || c.Short == "" {
			t.Errorf("%s --help: exit %d\n%s", c.Name(), code, stdout)
		}
	}
}

func TestServersStopOnSIGTERM(t *testing.T) {
	for _, name := range []string{"liveness", "test-webserver", "nettest", "guestbook", "grpc-health-checking"} {
		t.Run(name, func(t *testing.T) {
			r := start(pod(t), name)
			r.Signal(syscall.SIGTERM)
			// They do not handle it, so it is the kernel's default.
			if code := r.Wait(); code != kit.ExitSignal+int(syscall.SIGTERM) {
				t.Errorf("exit %d\n%s", code, r.Stderr)
			}
		})
	}
}

func TestPanicInAPartEndsTheProgram(t *testing.T) {
	boom := func(context.Context) error { panic("boom") }
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "boom") {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = together(t.Context(), boom, idle)
}

// insecureTLS trusts everybody, as a kubelet's probe does.
var insecureTLS = &tls.Config{InsecureSkipVerify: true}
