package box

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci/tool"
)

// fakePreferences replaces the verb of a command by the words of its kuberc file. A file that begins
// with "!" cannot be loaded; one that begins with "?" is wrong.
func fakePreferences(args []string, stderr io.Writer) ([]string, error) {
	name, ok := strings.CutPrefix(args[1], kubercFlag+"=")
	if !ok {
		return nil, fmt.Errorf("no file in %q", args)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text := string(data)
	switch {
	case strings.HasPrefix(text, "!"):
		return nil, fmt.Errorf("%s: %s is bad", kubercFailed, name)
	case strings.HasPrefix(text, "?"):
		return nil, fmt.Errorf("error occurred while applying preferences: an alias in %s is wrong", name)
	case strings.Contains(text, "warn"):
		fmt.Fprintf(stderr, "kuberc: ignoring something in %s", name)
	}
	i := slices.IndexFunc(args[1:], func(a string) bool { return !strings.HasPrefix(a, "-") }) + 1
	return slices.Concat(args[:i], strings.Fields(text), args[i+1:]), nil
}

// TestPreferences runs commands whose verb is an alias.
func TestPreferences(t *testing.T) {
	for _, ownRoot := range []bool{false, true} {
		t.Run(fmt.Sprintf("own root %v", ownRoot), func(t *testing.T) {
			if ownRoot && !tool.OwnRoot() {
				t.Skip("this machine does not let an ordinary user have a root directory of its own (user namespaces)")
			}
			testPreferences(t, ownRoot)
		})
	}
}

func testPreferences(t *testing.T, ownRoot bool) {
	b := machineWith(t, t.TempDir(), "127.0.0.1:6443", standard, ownRoot)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("leaked"), 0o600); err != nil {
		t.Fatal(err)
	}
	const usual = "~/.kube/kuberc"
	for _, tt := range []struct{ name, command, want string }{
		{"none", "kubectl version", "kubectl version\n"},
		{"standard place", "echo show > " + usual + "; kubectl x pods", "kubectl show pods\n"},
		{"flag", "echo list-it > /tmp/a; kubectl --kuberc=/tmp/a x pods | sed s@/.*/tmp@/tmp@", "kubectl --kuberc=/tmp/a list-it pods\n"},
		{"flag apart, from elsewhere", "cd /tmp; kubectl x --kuberc a; cd", "kubectl list-it --kuberc a\n"},
		{"variable", "KUBERC=/tmp/a kubectl x pods", "kubectl list-it pods\n"},
		{"off", "KUBERC=off kubectl x pods; KUBECTL_KUBERC=false kubectl x pods", "kubectl x pods\nkubectl x pods\n"},
		{"off and a flag", "KUBERC=off kubectl x --kuberc=/tmp/a", "error occurred while applying preferences kuberc error disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive\n"},
		{"no value", "kubectl x --kuberc; kubectl x --kuberc=", strings.Repeat("error occurred while applying preferences kuberc file is not found\n", 2)},
		{"for a container", "kubectl version -- --kuberc=/nope", "kubectl show -- --kuberc=/nope\n"},
		{"a pipe", "kubectl --kuberc=<(echo piped) x | sed 's@=[^ ]*@@'", "kubectl --kuberc piped\n"},
		{
			"a file of the host", "kubectl --kuberc=/etc/shadow x; kubectl --kuberc=/nope x",
			kubercFailed + ": open /etc/shadow: no such file or directory\n" + kubercFailed + ": open /nope: no such file or directory\n",
		},
		{"a link to a file of the host", "ln -s " + secret + " /tmp/l; ln -s ../../../../../.." + secret + " /tmp/m; for f in l m; do kubectl --kuberc=/tmp/$f x 2>&1 | grep -c leaked; done", "0\n0\n"},
		{"an endless file", "KUBERC=/dev/zero kubectl x", kubercFailed + ": /dev/zero is larger than 4194304 bytes\n"},
		{"it cannot be loaded", "echo '!' > " + usual + "; kubectl version", "kuberc: no preferences loaded from /root/.kube/kuberc: /root/.kube/kuberc is bad\nkubectl version\n"},
		{"it cannot be loaded, and was chosen", "KUBERC=~/.kube/kuberc kubectl version", kubercFailed + ": /root/.kube/kuberc is bad\n"},
		{"it is wrong", "echo '?' > " + usual + "; kubectl version", "error occurred while applying preferences: an alias in /root/.kube/kuberc is wrong\n"},
		{"a warning", "echo 'warn' > " + usual + "; kubectl version", "kuberc: ignoring something in /root/.kube/kuberc\nkubectl warn\n"},
		{"helm has none", "helm version", "helm version\n"},
		// What an alias stands for is judged.
		{"edit", "echo edit > " + usual + "; kubectl x deploy", "Error: Cannot use `kubectl edit`. Use `kubectl patch` instead.\n"},
		{"a terminal", "echo exec --tty=true web > " + usual + "; kubectl x 2>&1 | tail -1", "kubectl exec web\n"},
		{"a program for credentials", "echo config set-credentials me --exec-command=sh > " + usual + "; kubectl x 2>&1 | cut -c1-50", "Error: Cannot use credentials that a program makes\n"},
		{"files", "echo content > /tmp/x.yaml; echo apply -f /tmp/x.yaml > " + usual + "; kubectl x", "content\n"},
		{"a kubeconfig", "printf 'users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]' > /tmp/k; " +
			"echo show --kubeconfig=/tmp/k > " + usual + "; kubectl x 2>&1 | cut -c1-40", "kubectl: user \"me\" of /tmp/k runs a prog\n"},
		{"nothing is left", "ls -A /tmp | grep fd", ""},
	} {
		if o := run(t, b, tt.command); o.Output != tt.want {
			t.Errorf("%s: %s: %q, want %q", tt.name, tt.command, o.Output, tt.want)
		}
	}
}
