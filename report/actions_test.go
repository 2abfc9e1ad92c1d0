package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/record"
)

func TestPrograms(t *testing.T) {
	for command, want := range map[string]string{
		"kubectl get pods -n x":                                 "kubectl get",
		"kubectl -n get get pods":                               "kubectl get",
		"KUBECONFIG=x /usr/bin/kubectl --context a describe po": "kubectl describe",
		"kubectl":                               "kubectl",
		"helm upgrade a b":                      "helm upgrade",
		"cd x && ls -l | grep y; echo $(cat z)": "cd,ls,grep,echo,cat",
		"q() { curl -s $1; }; q a; q b":         "curl",
		"$cmd now":                              "",
		"":                                      "",
		"echo 'unfinished":                      "echo",
		"x=1":                                   "",
	} {
		if d := cmp.Diff(want, strings.Join(programs(command), ",")); d != "" {
			t.Errorf("%q (-want +got):\n%s", command, d)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add("```\nexec_shell(\"kubectl get pods\")\n```")
	f.Add("exec_shell(command='ls | (', timeout=3)")
	f.Add("exec_shell([1], {})")
	f.Fuzz(func(t *testing.T, response string) {
		var r Run
		r.step(record.Step{Response: response, Action: shell})
		if len(r.Actions) != 1 {
			t.Errorf("%d actions in one step", len(r.Actions))
		}
		for _, c := range r.Commands {
			if c == "" {
				t.Errorf("a command without a name in %q", response)
			}
			if p := cell(c); strings.ContainsAny(p, "\n\t\x1b") || len([]rune(p)) > maxCell {
				t.Errorf("%q in a table", p)
			}
		}
	})
}
