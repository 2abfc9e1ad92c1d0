package netshoot

import (
	"context"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

func TestImage(t *testing.T) {
	tool := func(context.Context, *kit.Env) error { return nil }
	r := kit.NewRegistry(Image(map[string]kit.Program{"bash": tool, "dig": tool}))
	for ref, ok := range map[string]bool{
		"nicolaka/netshoot": true, "nicolaka/netshoot:latest": true, "nicolaka/netshoot:v0.13": true,
		"netshoot": false, "nicolaka/netshoot:1": false,
	} {
		if _, _, err := r.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
	_, image, err := r.Resolve("nicolaka/netshoot")
	if err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]bool{"/bin/bash": true, "/bin/zsh": true, "/usr/bin/dig": true, "/usr/bin/tcpdump": false} {
		if _, ok := image.Programs[name]; ok != has {
			t.Errorf("%s: %v, want %v", name, ok, has)
		}
	}
}
