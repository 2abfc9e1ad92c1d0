package busybox

import (
	"context"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

func TestImage(t *testing.T) {
	called := ""
	tool := func(_ context.Context, env *kit.Env) error {
		called = env.Args[0]
		return nil
	}
	r := kit.NewRegistry(Image(map[string]kit.Program{"sh": tool, "ls": tool}))
	for ref, ok := range map[string]bool{
		"busybox": true, "busybox:stable": true, "busybox:1": true, "busybox:1.36": true, "busybox:1.36.1": true,
		"busybox:1.28.4": true, "busybox:musl": true, "busybox:stable-glibc": true, "busybox:1.36.1-uclibc": true,
		"registry.k8s.io/e2e-test-images/busybox:1.37.0-1": true,
		"busybox:2": false, "busybox:1.3": false, "busybox:lates": false,
	} {
		if _, _, err := r.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
	_, image, err := r.Resolve("busybox")
	if err != nil {
		t.Fatal(err)
	}
	if code := kit.Run(t.Context(), image.Programs["/bin/ls"], &kit.Env{Args: []string{"ls"}}); code != 0 || called != "ls" {
		t.Errorf("exit %d, called %q", code, called)
	}
}
