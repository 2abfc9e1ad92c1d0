package tool

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestRunNeedsConfinement(t *testing.T) {
	programs := map[string]Program{"kubectl": func(_ *World, args []string) int { return len(args) }, "helm": nil}
	for _, tt := range []struct {
		name       string
		root, port string
		args       []string
		confine    error
		code       int
		stderr     string
	}{
		{"run", "/scratch", "6443", []string{"kubectl", "get", "pods"}, nil, 3, ""},
		{"no tool", "/scratch", "6443", nil, nil, exitUsage, "name one of helm, kubectl"},
		{"unknown tool", "/scratch", "6443", []string{"sh"}, nil, exitUsage, "name one of helm, kubectl"},
		{"no root", "", "6443", []string{"kubectl"}, nil, exitUsage, "must say where kubectl may go"},
		{"no port", "/scratch", "", []string{"kubectl"}, nil, exitUsage, "must say where kubectl may go"},
		{"not confined", "/scratch", "6443", []string{"kubectl"}, errors.New("no"), exitUsage, "tool: no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(rootVar, tt.root)
			t.Setenv(portVar, tt.port)
			var stderr bytes.Buffer
			code := run(&stderr, tt.args, programs, takePlace, func(p Place) (*World, error) {
				if p.Root != "/scratch" || p.Port != 6443 {
					t.Errorf("confined to %+v", p)
				}
				return &World{}, tt.confine
			})
			if code != tt.code || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("code %d, %q", code, stderr.String())
			}
		})
	}
}

func TestPlaceIsTakenOnce(t *testing.T) {
	want := Place{Root: "/scratch", Port: 6443, OwnRoot: true, ReadOnly: true}
	for _, kv := range want.environ() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	if got, ok := takePlace(); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	if got, ok := takePlace(); ok {
		t.Errorf("a program would still see %+v", got)
	}
}

func TestConfineChecksItsArguments(t *testing.T) {
	for _, p := range []Place{{Root: t.TempDir()}, {Root: t.TempDir(), Port: 70000}, {Root: "/no/such/directory", Port: 1}} {
		if _, err := Confine(p); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}

func TestDescribe(t *testing.T) {
	for abi, want := range map[int]string{0: "none: ", 1: "cannot confine connections", 3: "cannot confine connections", 4: "cannot confine UDP", 7: "ABI 7", 10: "no UDP"} {
		if got := describe(abi); !strings.Contains(got, want) {
			t.Errorf("%d: %s", abi, got)
		}
	}
	if got := Describe(true); !strings.HasPrefix(got, "a root of its own") {
		t.Error(got)
	}
}
