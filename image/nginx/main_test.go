package nginx

import (
	"context"
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
	m := kittest.New(t).Machine("web-1", "10.244.0.2")
	m.Install(Image(nil))
	return m
}

// site puts a configuration in the place of the default one.
func site(m *kittest.Machine, conf string) { m.Write("/etc/nginx/conf.d/default.conf", conf) }

// start runs the image's command.
func start(m *kittest.Machine) *kittest.Run {
	return m.Start(entrypoint, "/docker-entrypoint.sh", "nginx", "-g", "daemon off;")
}

// serve starts nginx with the given servers and waits until it listens.
func serve(t testing.TB, conf string) (*kittest.Machine, *kittest.Run) {
	t.Helper()
	m := pod(t)
	site(m, conf)
	r := start(m)
	r.Await("start worker processes")
	return m, r
}

// get asks for a page, without following redirections.
func get(t testing.TB, m *kittest.Machine, url string, headers ...string) kittest.Answer {
	t.Helper()
	return kittest.Get(t, m, url, headers...)
}

func TestDefaultSite(t *testing.T) {
	m := pod(t)
	r := start(m)
	r.Await("[notice] 1#1: start worker processes\n")
	a := get(t, m, "http://localhost/")
	if a.Code != 200 || !strings.Contains(a.Body, "<h1>Welcome to nginx!</h1>") {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	for name, want := range map[string]string{"Server": "nginx/1.27.5", "Content-Type": "text/html", "Accept-Ranges": "bytes"} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a := get(t, m, "http://localhost/none"); a.Code != 404 || !strings.Contains(a.Body, "<hr><center>nginx/1.27.5</center>") {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if !strings.Contains(r.Stdout.String(), "/docker-entrypoint.sh: Configuration complete; ready for start up\n") || m.Read("/run/nginx.pid") != "1\n" {
		t.Error(r.Stdout)
	}
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	r.Await("signal 15 (SIGTERM) received, exiting")
}

func TestCommandLine(t *testing.T) {
	tests := []struct {
		args   []string
		stderr string
		code   int
	}{
		{[]string{"-v"}, "nginx version: nginx/1.27.5\n", 0},
		{[]string{"-t"}, "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\nnginx: configuration file /etc/nginx/nginx.conf test is successful\n", 0},
		{[]string{"-tq"}, "", 0},
		{[]string{"-x"}, "nginx: invalid option: \"-x\"\n", 1},
		{[]string{"-s", "fly"}, "nginx: invalid option: \"-s fly\"\n", 1},
		{[]string{"-c"}, "nginx: option \"-c\" requires parameter\n", 1},
		{[]string{"-s", "reload"}, "nginx: [error] open() \"/run/nginx.pid\" failed (2: No such file or directory)\n", 1},
	}
	for _, tt := range tests {
		r := pod(t).Start(Main, append([]string{"nginx"}, tt.args...)...)
		if code := r.Wait(); code != tt.code || r.Stderr.String() != tt.stderr {
			t.Errorf("%v: exit %d, %q", tt.args, code, r.Stderr)
		}
	}
}

func TestTags(t *testing.T) {
	r := kit.NewRegistry(Image(nil))
	for ref, ok := range map[string]bool{
		"nginx": true, "nginx:latest": true, "nginx:1.27": true, "nginx:1.14.2": true, "nginx:1.16.1": true, "nginx:1.7.9": true, "nginx:1.19.10": true,
		"nginx:stable-alpine": true, "nginx:1.25-alpine": true, "nginx:1.21.6-alpine": true, "docker.io/library/nginx:1": true,
		"registry.k8s.io/e2e-test-images/nginx:1.27.0-2": true, "registry.k8s.io/e2e-test-images/nginx:1.28.0-2": true, "registry.k8s.io/e2e-test-images/nginx:1.14-2": true,
		"nginx:1.999-doesnotexist": false, "nginx:1.161": false, "nginx:lastest": false, "nginx:2.0": false, "ngnix": false,
	} {
		if _, _, err := r.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestEntrypoint(t *testing.T) {
	m := pod(t)
	m.Vars["BACKEND"] = "10.244.0.9"
	m.Write("/etc/nginx/templates/default.conf.template", "server { listen 80; location / { return 200 \"${BACKEND} $host\"; } }")
	r := start(m)
	r.Await("Running envsubst on /etc/nginx/templates/default.conf.template to /etc/nginx/conf.d/default.conf")
	r.Await("start worker processes")
	if a := get(t, m, "http://localhost/"); a.Body != "10.244.0.9 localhost" {
		t.Errorf("%d %s", a.Code, a.Body)
	}
}

func TestEntrypointRunsOtherCommands(t *testing.T) {
	m := pod(t)
	m.Programs["/bin/sleep"] = func(context.Context, *kit.Env) error { return kit.Exit(9) }
	if code := m.Start(entrypoint, "/docker-entrypoint.sh", "sleep", "1").Wait(); code != 9 {
		t.Errorf("exit %d", code)
	}
	if code := m.Start(entrypoint, "/docker-entrypoint.sh", "none").Wait(); code != kit.ExitNotFound {
		t.Errorf("exit %d", code)
	}
}

// Whoever forgets "daemon off;" gets a container that ends at once.
func TestDaemon(t *testing.T) {
	m := pod(t)
	if code := m.Start(Main, "/usr/sbin/nginx").Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	m.WaitListen(":80")
	if a := get(t, m, "http://localhost/"); a.Code != 200 {
		t.Errorf("%d", a.Code)
	}
}
