package flower

import "github.com/aiopslab/aiopslab/kit"

// Images are what a federation's containers run. The tools, by name, are what they have in /bin.
func Images(tools map[string]kit.Program) []kit.Image {
	const flower = `1\.(1[3-9]|2\d)\.\d+`
	return []kit.Image{
		image(tools, "flwr/superlink", "latest|"+flower, "flower-superlink", superlinkMain),
		image(tools, "flwr/supernode", "latest|"+flower, "flower-supernode", supernodeMain),
		image(tools, "aiopslab/flower-server", `latest|v1(\.\d+)*`, "flwr-serverapp", serverappMain),
		image(tools, "aiopslab/flower-client", `latest|v1(\.\d+)*`, "flwr-clientapp", clientappMain),
	}
}

// image is one of them, with one program.
func image(tools map[string]kit.Program, name, tags, program string, main kit.Program) kit.Image {
	i := kit.Image{
		Names:      []string{name},
		Tags:       tags,
		Vars:       map[string]string{"PATH": "/python/venv/bin:/usr/local/bin:/usr/bin:/bin"},
		WorkDir:    "/app",
		Entrypoint: []string{program},
		Programs:   map[string]kit.Program{"/python/venv/bin/" + program: main},
		Memory:     24 << 20,
		Size:       210 << 20,
	}
	for tool, p := range tools {
		i.Programs["/bin/"+tool] = p
	}
	return i
}
