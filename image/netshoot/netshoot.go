// Package netshoot is the image nicolaka/netshoot: what one takes into a pod to look at its network.
package netshoot

import (
	"github.com/aiopslab/aiopslab/image/alpine"
	"github.com/aiopslab/aiopslab/kit"
)

// Image returns the image with the given tools under /usr/bin. A tool of the original that is not
// among them is not found.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{}
	for name, p := range tools {
		switch name {
		case "sh", "ash", "bash":
			programs["/bin/"+name] = p
		default:
			programs["/usr/bin/"+name] = p
		}
	}
	if bash := tools["bash"]; bash != nil {
		programs["/bin/zsh"] = bash
	}
	return kit.Image{
		Names:    []string{"nicolaka/netshoot"},
		Tags:     `latest|v0\.\d{1,2}`,
		Cmd:      []string{"zsh"},
		WorkDir:  "/root",
		Programs: programs,
		Files:    alpine.Files(),
		Memory:   2 << 20,
		Size:     203_000_000,
	}
}
