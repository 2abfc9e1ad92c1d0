package tool

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestRunNeedsConfinement(t *testing.T) {
	tools := map[string]func([]string) int{"kubectl": func(args []string) int { return len(args) }, "helm": nil}
	where := map[string]string{rootVar: "/scratch", portVar: "6443"}
	for _, tt := range []struct {
		name    string
		env     map[string]string
		args    []string
		confine error
		code    int
		stderr  string
	}{
		{"run", where, []string{"kubectl", "get", "pods"}, nil, 3, ""},
		{"no tool", where, nil, nil, exitUsage, "name one of helm, kubectl"},
		{"unknown tool", where, []string{"sh"}, nil, exitUsage, "name one of helm, kubectl"},
		{"no root", map[string]string{portVar: "6443"}, []string{"kubectl"}, nil, exitUsage, "must say where kubectl may go"},
		{"no port", map[string]string{rootVar: "/scratch"}, []string{"kubectl"}, nil, exitUsage, "must say where kubectl may go"},
		{"not confined", where, []string{"kubectl"}, errors.New("no"), exitUsage, "tool: no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := run(&stderr, func(name string) string { return tt.env[name] }, tt.args, tools, func(root string, port int) error {
				if root != "/scratch" || port != 6443 {
					t.Errorf("confined to %s, %d", root, port)
				}
				return tt.confine
			})
			if code != tt.code || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("code %d, %q", code, stderr.String())
			}
		})
	}
	if got := Environ("/scratch", 6443); got[0] != rootVar+"=/scratch" || got[1] != portVar+"=6443" {
		t.Error(got)
	}
}

func TestConfineChecksItsArguments(t *testing.T) {
	for _, err := range []error{Confine(t.TempDir(), 0), Confine(t.TempDir(), 70000), Confine("/no/such/directory", 1)} {
		if err == nil {
			t.Error("no error")
		}
	}
}

func TestDescribe(t *testing.T) {
	for abi, want := range map[int]string{0: "none: ", 1: "cannot confine connections", 3: "cannot confine connections", 4: "cannot confine UDP", 7: "ABI 7", 10: "no UDP"} {
		if got := describe(abi); !strings.Contains(got, want) {
			t.Errorf("%d: %s", abi, got)
		}
	}
}
