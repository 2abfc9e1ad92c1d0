package prometheus

import (
	_ "embed"

	"github.com/aiopslab/aiopslab/kit"
)

// Version is the version of Prometheus that is linked in, as users know it.
const Version = "3.15.0"

//go:embed prometheus.yml
var defaultConfig string

// Image returns the image. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{"/bin/prometheus": Main}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"prom/prometheus", "quay.io/prometheus/prometheus"},
		Tags:       `latest|main|v3(\.\d+){0,2}(-distroless)?`,
		Entrypoint: []string{"/bin/prometheus"},
		Cmd:        []string{"--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"},
		WorkDir:    "/prometheus",
		User:       "65534",
		Programs:   programs,
		Files: map[string]string{
			"/etc/prometheus/prometheus.yml": defaultConfig,
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" +
				"nobody:x:65534:65534:nobody:/home:/bin/false\n",
			"/etc/group":   "root:x:0:\nnobody:x:65534:\n",
			"/prometheus/": "",
			"/tmp/":        "",
		},
		Memory: 48 << 20,
		Size:   318_000_000,
	}
}
