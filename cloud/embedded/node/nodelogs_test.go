package node

import (
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// What a node logs is asked of the node, never of the machine that it is simulated on.
func TestNodeLogs(t *testing.T) {
	k := testKubelet(t)
	env := k.machine.env()
	for name, text := range map[string]string{"/var/log/agent.log": "of a file\n", "/etc/secret": "elsewhere\n"} {
		if err := env.MkdirAll("/etc", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := env.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	logger := k.machine.journal.logger()
	logger.Info("Pod started", "pod", klog.KRef("shop", "web"), "at", k.machine.dir+"/kubelet/x")
	logger.Error(os.ErrNotExist, "Volume is gone", "pod", klog.KRef("shop", "web"))
	logger.V(9).Info("Too much")
	handler := k.routes()
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	const line = `[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6} n1 kubelet\[655\]: `
	started := line + `I\d{4} [\d:.]+     655 nodelogs_test.go:\d+\] "Pod started" pod="shop/web" at="/var/lib/kubelet/kubelet/x"` + "\n"
	gone := line + `E\d{4} [\d:.]+     655 nodelogs_test.go:\d+\] "Volume is gone" err="file does not exist" pod="shop/web"` + "\n"
	for _, tt := range []struct {
		path string
		code int
		want string // a regular expression for all of it
	}{
		{"/logs/", 200, `(?s)<!doctype html>.*<pre>\n<a href="agent.log">agent.log</a>\n<a href="pods/">pods/</a>\n</pre>\n`},
		{"/logs/agent.log", 200, "of a file\n"},
		{"/logs/?query=/agent.log", 200, "of a file\n"},
		{"/logs/?query=agent", 200, "of a file\n"},
		{"/logs/?query=kubelet", 200, started + gone},
		{"/logs/?query=kubelet&tailLines=1", 200, gone},
		{"/logs/?query=kubelet&pattern=pod+started", 200, started},
		{"/logs/?query=kubelet&sinceTime=2100-01-01T00:00:00Z", 200, "-- No entries --\n"},
		{"/logs/?query=kubelet&untilTime=2000-01-01T00:00:00Z", 200, "-- No entries --\n"},
		{"/logs/?query=sshd", 200, "\nlog not found for sshd\n"},
		{"/logs/?query=agent&tailLines=3", 200, "(?s)\noptions present and query resolved to log files for .agent.*"},
		{"/logs/?query=kubelet&sinceTime=yesterday", 400, `sinceTime: Invalid value.*\n`},
		{"/logs/?query=kubelet&pattern=(", 400, `pattern: Invalid value.*\n`},
		{"/logs/?query=kubelet&boot=-1", 400, `boot: Invalid value.*\n`},
		{"/logs/?query=kubelet%3Bid", 400, `query: Invalid value.*\n`},
		{"/logs/?query=$(id)", 400, `query: Invalid value.*\n`},
		{"/logs/?query=kubelet&query=/agent.log", 406, `.*cannot specify a file and service\n`},
		{"/logs/?tailLines=1", 406, `query: Required value.*\n`},
		{"/logs/pods/?query=kubelet", 406, "path not allowed in query mode\n"},
		{"/logs/?query=/../../etc/secret", 404, `.*\n`},
		{"/logs/%2e%2e/%2e%2e/etc/secret", 404, `.*\n`},
		{"/logs/syslog", 404, `.*\n`},
	} {
		code, got := get(tt.path)
		if code != tt.code || !regexp.MustCompile("^(?:"+tt.want+")$").MatchString(got) {
			t.Errorf("%s: %d %q, want %d %s", tt.path, code, got, tt.code, tt.want)
		}
		for _, secret := range []string{k.machine.dir, fmt.Sprintf(" %d ", os.Getpid()), "elsewhere"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s shows %q: %q", tt.path, secret, got)
			}
		}
	}
	for range 2 * journalLines {
		logger.Info("Again")
	}
	if n := len(k.machine.journal.lines); n > journalLines*5/4 {
		t.Errorf("the journal keeps %d lines", n)
	}
}
