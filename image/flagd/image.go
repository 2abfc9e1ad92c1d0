package flagd

import "github.com/aiopslab/aiopslab/kit"

// Version is the release that this behaves like.
const Version = "v0.12.9"

// Image is flagd. The tools, by name, are what the image has in /bin; the public one has none.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:      []string{"ghcr.io/open-feature/flagd"},
		Tags:       `latest|v0\.1[123]\.\d{1,2}`,
		Entrypoint: []string{"/flagd-build"},
		Cmd:        []string{"start"},
		User:       "65532:65532",
		Vars:       map[string]string{"PATH": kit.DefaultPath},
		Programs:   map[string]kit.Program{"/flagd-build": Main},
		Files: map[string]string{
			"/tmp/": "",
			"/etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n" +
				"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
			"/etc/group": "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n",
		},
		Memory: 18 << 20,
		Size:   32 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	return i
}

// UI is the web front end by which people change the flags of a file.
func UI(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:      []string{"ghcr.io/open-telemetry/demo"},
		Tags:       `2\.[012]\.\d-flagd-ui`,
		Entrypoint: []string{"/app/bin/server"},
		WorkDir:    "/app",
		Vars:       map[string]string{"PATH": kit.DefaultPath},
		Programs:   map[string]kit.Program{"/app/bin/server": UIMain},
		Files:      map[string]string{"/app/data/": "", "/tmp/": ""},
		Memory:     70 << 20,
		Size:       190 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	return i
}
