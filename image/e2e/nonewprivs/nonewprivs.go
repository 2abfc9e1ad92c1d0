package nonewprivs

import (
	"context"
	"fmt"

	"github.com/aiopslab/aiopslab/kit"
)

// Image is nonewprivs on Alpine. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{"/usr/local/bin/nnp": Main}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:    []string{"registry.k8s.io/e2e-test-images/nonewprivs"},
		Tags:     `1\.\d`,
		Cmd:      []string{"nnp"},
		Vars:     map[string]string{"PATH": kit.DefaultPath},
		Programs: programs,
		Memory:   1 << 20,
		Size:     7 << 20,
	}
}

// Main prints the effective user ID.
func Main(_ context.Context, env *kit.Env) error {
	_, err := fmt.Fprintf(env.Stdout, "Effective uid: %d\n", env.User.UID)
	return err
}
