package alpine

import (
	"context"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

func TestImage(t *testing.T) {
	tool := func(context.Context, *kit.Env) error { return nil }
	r := kit.NewRegistry(Image(map[string]kit.Program{"sh": tool, "wget": tool, "curl": tool, "bash": tool}))
	for ref, ok := range map[string]bool{
		"alpine": true, "alpine:latest": true, "alpine:edge": true, "alpine:3": true, "alpine:3.20": true, "alpine:3.18.4": true,
		"docker.io/library/alpine:3.22": true, "alpine:4": false, "alpine:3.20-slim": false,
	} {
		if _, _, err := r.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
	_, image, err := r.Resolve("alpine")
	if err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]bool{"/bin/sh": true, "/bin/wget": true, "/bin/curl": false, "/bin/bash": false} {
		if _, ok := image.Programs[name]; ok != has {
			t.Errorf("%s: %v, want %v", name, ok, has)
		}
	}
}
