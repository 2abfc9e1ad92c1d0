package box

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzCommandLine gives the policy and the translation of paths what an agent may write.
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{
		"kubectl apply -f /tmp/x.yaml", "kubectl get pods -ojsonpath-file=/etc/shadow", "kubectl -Rf=../../x", "kubectl logs -fn shop geo",
		"helm template x ../../y -f a,/b --set-file k=/c", "kubectl cp a:/b ../../c", "tail -fn 5 x", "ping", "sleep 1e308 infinity", "kubectl exec x -- -f /y",
		"kubectl --kubeconfig", "kubectl -f", "kubectl - -- -", "kubectl config set-credentials x --exec-command=y", "docker logs -f", "kubectl apply -f /dev/fd/63",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, " ")
		if args[0] == "" {
			return
		}
		v := judge(args, 30*time.Second)
		if v.refuse == "" && (len(v.args) == 0 || v.args[0] != args[0]) {
			t.Fatalf("%q becomes %q", args, v.args)
		}
		if v.refuse != "" || !slices.Contains(toolNames, args[0]) {
			return
		}
		const dir = "/host/scratch"
		r := &rewriter{tool: args[0], dir: dir, cwd: "/root", open: func(string) (string, bool) { return "/tmp/.fd-1", true }}
		if out := r.args(v.args); len(out) != len(v.args) {
			t.Fatalf("%q becomes %q", v.args, out)
		}
		// A path stays inside, whatever it is.
		for _, a := range v.args {
			host := r.host(a)
			if isURL(a) || !filepath.IsAbs(host) && !slices.Contains(strings.Split(host, "/"), "..") {
				continue
			}
			if clean := filepath.Clean(host); clean != dir && !strings.HasPrefix(clean, dir+"/") {
				t.Fatalf("%q leads to %q", a, host)
			}
		}
		// Without a directory of the host the agent's paths are its own.
		own := &rewriter{tool: args[0], cwd: "/root", open: r.open}
		if name := own.host("/a/../b"); name != "/b" {
			t.Fatal(name)
		}
	})
}
