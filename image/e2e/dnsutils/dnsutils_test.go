package dnsutils

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
)

func TestToolsAreWhereDebianHasThem(t *testing.T) {
	tool := func(context.Context, *kit.Env) error { return nil }
	_, image, err := kit.NewRegistry(Image(map[string]kit.Program{"sh": tool, "dig": tool, "getent": tool, "coredns": tool})).
		Resolve("registry.k8s.io/e2e-test-images/glibc-dns-testing:2.1.1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/bin/sh", "/coredns", "/usr/bin/dig", "/usr/bin/getent"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(image.Programs))); diff != "" {
		t.Error(diff)
	}
}
