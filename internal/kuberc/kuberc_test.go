package kuberc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const file = `
apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
aliases:
- {name: getn, command: get, prependArgs: [pods], appendArgs: ["--", nginx], options: [{name: output, default: wide}]}
- {name: change, command: edit}
- {name: image, command: set image, options: [{name: all, default: "true"}]}
- {name: steal, command: apply, appendArgs: [-f, /etc/passwd], options: [{name: filename, default: /etc/shadow}]}
- {name: get, command: edit}
- {name: ro, command: rollout, options: [{name: namespace, default: shop}]}
- {name: "k", command: ""}
- {name: nope, command: no such command}
defaults:
- {command: delete, options: [{name: interactive, default: "true"}]}
- {command: describe, options: [{name: show-events, default: "false"}, {name: filename, default: "/etc/shadow,b.yaml"}]}
- {command: config set-credentials, options: [{name: exec-command, default: sh}]}
- {command: logs, options: [{name: follow, default: "true"}, {name: kubeconfig, default: /etc/shadow}]}
`

func TestExpand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kuberc")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ in, want, says string }{
		{"kubectl version", "kubectl version", ""},
		{"kubectl getn", "kubectl --output=wide get pods -- nginx", ""},
		{"kubectl getn web -o json", "kubectl get pods web -o json -- nginx", ""},
		{"kubectl change deploy web", "kubectl edit deploy web", ""},
		{"kubectl -v=5 image deploy a=b", "kubectl --all=true -v=5 set image deploy a=b", ""},
		{"kubectl steal", "kubectl --filename=/etc/shadow apply -f /etc/passwd", ""},
		{"kubectl get pods", "kubectl get pods", ""}, // Built-in commands cannot be shadowed.
		{"kubectl delete pod web", "kubectl --interactive=true delete pod web", ""},
		{"kubectl delete pod web --interactive=false", "kubectl delete pod web --interactive=false", ""},
		{"kubectl describe pod", "kubectl --filename=/etc/shadow --filename=b.yaml --show-events=false describe pod", ""},
		{"kubectl config set-credentials me", "kubectl --exec-command=sh config set-credentials me", ""},
		{"kubectl logs web", "kubectl --follow=true --kubeconfig=/etc/shadow logs web", ""},
		{"kubectl ro restart deploy web", "kubectl --namespace=shop rollout restart deploy web", ""},
		{"kubectl k edit deploy web", "kubectl edit deploy web", ""},
		{"kubectl exec web -- getn", "kubectl exec web -- getn", ""},
		{"kubectl other", "kubectl other", ""}, // It says itself that there is none.
		{"kubectl nope", "", `command "no such command" not found to set alias "nope"`},
	} {
		t.Run(tt.in, func(t *testing.T) {
			args := strings.Fields(tt.in)
			args = append([]string{args[0], "--kuberc=" + name}, args[1:]...)
			var stderr strings.Builder
			out, err := Expand(args, &stderr)
			if err != nil {
				stderr.WriteString(err.Error())
			}
			got := strings.Replace(strings.Join(out, " "), " --kuberc="+name, "", 1)
			if got != tt.want || !strings.Contains(stderr.String(), tt.says) {
				t.Errorf("is %q, want %q; it says %q", got, tt.want, stderr.String())
			}
		})
	}
}

func TestExpandErrors(t *testing.T) {
	for name, content := range map[string]string{"no such file": "", "no preferences": "apiVersion: v1\nkind: Pod\n", "no YAML": "root:x:0:0:secret\n"} {
		file := filepath.Join(t.TempDir(), "kuberc")
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := Expand([]string{"kubectl", "--kuberc=" + file, "get", "pods"}, &strings.Builder{})
		if err == nil || !strings.HasPrefix(err.Error(), "error occurred while applying preferences kuberc error kuberc: ") {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
}

// FuzzExpand: whatever an agent writes into its kuberc, there is a command line or an error, and what
// is for a container stays as it is.
func FuzzExpand(f *testing.F) {
	f.Add("getn web", file)
	f.Add("steal --kuberc=/x", file)
	f.Add("", "")
	f.Add("- -- -x", "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\naliases: [{name: x, command: get, prependArgs: [--]}]")
	f.Add("a", "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\naliases: [{name: a, command: ''}]\n")
	f.Add("a b", "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\noverrides: [{command: get, flags: [{name: o, default: x}]}]\n")
	f.Fuzz(func(t *testing.T, command, content string) {
		name := filepath.Join(t.TempDir(), "kuberc")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"kubectl", "--kuberc=" + name}, append(strings.Fields(command), "--", "x y")...)
		out, err := Expand(args, &strings.Builder{})
		if err == nil && (len(out) < len(args)-1 || out[0] != "kubectl" || !strings.Contains(strings.Join(out, "\n"), "\n--\nx y")) {
			t.Errorf("%q with %q is %q", args, content, out)
		}
	})
}
