package nonroot

import "github.com/aiopslab/aiopslab/kit"

// User is the user the image runs as, unless a manifest names another.
const User = "1234"

// Image has the given tools, by name, in /bin and nothing else.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:    []string{"registry.k8s.io/e2e-test-images/nonroot"},
		Tags:     `1\.\d`,
		Cmd:      []string{"/bin/sh"},
		User:     User,
		Vars:     map[string]string{"PATH": kit.DefaultPath},
		Programs: programs,
		Files: map[string]string{
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			"/etc/group": "root:x:0:\nnogroup:x:65534:\n",
		},
		Memory: 1 << 20,
		Size:   40 << 20,
	}
}
