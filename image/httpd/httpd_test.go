package httpd

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T) (*kittest.Machine, *kittest.Run) {
	t.Helper()
	m := kittest.New(t).Machine("web-1", "10.244.0.2")
	m.Install(Image(nil))
	r := m.Start(Main, "httpd-foreground")
	r.Await("AH00094: Command line: 'httpd -D FOREGROUND'\n")
	return m, r
}

func TestPages(t *testing.T) {
	m, r := serve(t)
	m.Write(docRoot+"/sub/a b.txt", "text")
	m.Write(docRoot+"/sub/.hidden", "")
	m.Write(docRoot+"/noext", "x")
	m.Write("/etc/secret", "secret")
	tests := []struct {
		method, path string
		code         int
		body, kind   string
	}{
		{"GET", "/", 200, "<html><body><h1>It works!</h1></body></html>\n", "text/html"},
		{"HEAD", "/", 200, "", "text/html"},
		{"GET", "/sub", 301, `<a href="http://localhost/sub/">here</a>`, "text/html; charset=iso-8859-1"},
		{"GET", "/sub/", 200, `<li><a href="a%20b.txt"> a b.txt</a></li>`, "text/html;charset=ISO-8859-1"},
		{"GET", "/sub/a%20b.txt", 200, "text", "text/plain"},
		{"GET", "/noext", 200, "x", ""},
		{"GET", "/none", 404, "<p>The requested URL was not found on this server.</p>", "text/html; charset=iso-8859-1"},
		{"GET", "/../../../../etc/secret", 404, "<title>404 Not Found</title>", "text/html; charset=iso-8859-1"},
		{"POST", "/", 405, "<p>The requested method POST is not allowed for this URL.</p>", "text/html; charset=iso-8859-1"},
	}
	client := m.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.code || !strings.Contains(string(body), tt.body) || resp.Header.Get("Content-Type") != tt.kind || resp.Header.Get("Server") != "Apache/2.4.63 (Unix)" {
			t.Errorf("%s %s: %d %v\n%s", tt.method, tt.path, resp.StatusCode, resp.Header, body)
		}
	}
	common := regexp.MustCompile(`(?m)^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET / HTTP/1\.1" 200 45$`)
	if !common.MatchString(r.Stdout.String()) || !strings.Contains(r.Stdout.String(), `"HEAD / HTTP/1.1" 200 -`) {
		t.Error(r.Stdout)
	}
}

func TestForbiddenFile(t *testing.T) {
	m := kittest.New(t).Machine("web-1", "10.244.0.2")
	m.Install(Image(nil))
	m.Write(docRoot+"/secret", "x")
	root := m.Env().FS
	if err := root.Chmod(docRoot+"/secret", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := root.Chmod(prefix+"/logs", 0o777); err != nil {
		t.Fatal(err)
	}
	m.User = kit.User{UID: 33, GID: 33}
	r := m.Start(Main, "httpd-foreground")
	r.Await("resuming normal operations")
	resp, err := m.Client().Get("http://localhost/secret")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("%d", resp.StatusCode)
	}
	r.Await("AH00132: file permissions deny server access: " + docRoot + "/secret\n")
}

func TestStops(t *testing.T) {
	for sig, want := range map[syscall.Signal]string{
		syscall.SIGTERM:  "AH00491: caught SIGTERM, shutting down\n",
		syscall.SIGWINCH: "AH00492: caught SIGWINCH, shutting down gracefully\n",
	} {
		m, r := serve(t)
		r.AwaitHandler()
		r.Signal(syscall.SIGHUP)
		r.Await("Attempting to restart")
		r.Signal(sig)
		if code := r.Wait(); code != 0 || !strings.HasSuffix(r.Stderr.String(), want) {
			t.Errorf("%v: exit %d\n%s", sig, code, r.Stderr)
		}
		if _, err := m.Env().FS.Stat(pidFile); err == nil {
			t.Error("the pid file is still there")
		}
	}
}

func TestCannotStart(t *testing.T) {
	m, _ := serve(t)
	r := m.Start(Main, "httpd-foreground")
	if code := r.Wait(); code != 1 || !strings.Contains(r.Stderr.String(), "Address already in use: AH00072: make_sock: could not bind to address 0.0.0.0:80\n") {
		t.Errorf("exit %d\n%s", code, r.Stderr)
	}
	m = kittest.New(t).Machine("web-2", "10.244.0.2")
	m.Install(Image(nil))
	m.User = kit.User{UID: 1000}
	r = m.Start(Main, "httpd-foreground")
	if code := r.Wait(); code != 1 || !strings.Contains(r.Stderr.String(), "Permission denied: AH00099: could not create /usr/local/apache2/logs/httpd.pid\n") {
		t.Errorf("exit %d\n%s", code, r.Stderr)
	}
}

func TestCommandsAndTags(t *testing.T) {
	m := kittest.New(t).Machine("web", "10.244.0.2")
	r := m.Start(Main, "httpd", "-v")
	if code := r.Wait(); code != 0 || r.Stdout.String() != "Server version: Apache/2.4.63 (Unix)\n" {
		t.Errorf("exit %d %s", code, r.Stdout)
	}
	registry := kit.NewRegistry(Image(nil))
	for ref, ok := range map[string]bool{
		"httpd": true, "httpd:2.4": true, "httpd:2.4-alpine": true, "httpd:2.4.63": true, "registry.k8s.io/e2e-test-images/httpd:2.4.38-4": true,
		"httpd:2.5": false, "httpd:2.4.x": false, "httpd:lates": false,
	} {
		if _, _, err := registry.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
