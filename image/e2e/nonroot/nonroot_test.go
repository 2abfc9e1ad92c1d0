package nonroot

import (
	"context"
	"strconv"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

func TestRunsAsAUserByNumber(t *testing.T) {
	sh := func(context.Context, *kit.Env) error { return nil }
	_, image, err := kit.NewRegistry(Image(map[string]kit.Program{"sh": sh})).Resolve("registry.k8s.io/e2e-test-images/nonroot:1.5")
	if err != nil {
		t.Fatal(err)
	}
	// The kubelet can tell that a user is not root only if the image gives it by number.
	if _, err := strconv.Atoi(image.User); err != nil || image.Programs["/bin/sh"] == nil {
		t.Errorf("user %q, programs %v", image.User, image.Programs)
	}
}
