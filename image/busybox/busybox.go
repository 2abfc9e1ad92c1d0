// Package busybox is the image busybox: a shell and the small tools, nothing else.
package busybox

import "github.com/aiopslab/aiopslab/kit"

// Image returns the image with the given tools under /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := make(map[string]kit.Program, len(tools))
	for name, p := range tools {
		programs["/bin/"+name] = p
	}
	return kit.Image{
		Names:    []string{"busybox", "registry.k8s.io/e2e-test-images/busybox"},
		Tags:     `latest|stable|(stable-)?(musl|glibc|uclibc)|1(\.[23]\d(\.\d)?)?(-\d|-musl|-glibc|-uclibc)?`,
		Cmd:      []string{"sh"},
		Programs: programs,
		Memory:   1 << 20,
		Size:     2_211_000,
	}
}
