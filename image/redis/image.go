package redis

import "github.com/aiopslab/aiopslab/kit"

// Image is redis with its command-line client. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/usr/local/bin/redis-server":         Main,
		"/usr/local/bin/redis-cli":            CLI,
		"/usr/local/bin/docker-entrypoint.sh": redisBrand.entrypoint,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"redis"},
		Tags:       `latest|alpine(3\.\d{1,2})?|[5678](\.\d(\.\d{1,2})?)?(-(alpine(3\.\d{1,2})?|bookworm|bullseye|buster|trixie))?`,
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"redis-server"},
		WorkDir:    "/data",
		Vars:       map[string]string{"PATH": kit.DefaultPath, "REDIS_VERSION": Version},
		Programs:   programs,
		Files: map[string]string{
			"/data/": "",
			"/tmp/":  "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nredis:x:999:999::/home/redis:/bin/sh\n",
			"/etc/group": "root:x:0:\nredis:x:999:\nnogroup:x:65534:\n",
			"/etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 10 (buster)\"\nNAME=\"Debian GNU/Linux\"\n" +
				"VERSION_ID=\"10\"\nID=debian\n",
		},
		Memory: 7 << 20,
		Size:   105 << 20,
	}
}

// Valkey is the image of the store that came of Redis, with the programs of both names.
func Valkey(tools map[string]kit.Program) kit.Image {
	i := Image(tools)
	i.Names = []string{"valkey/valkey"}
	i.Tags = `latest|alpine(3\.\d{1,2})?|[789](\.\d(\.\d{1,2})?)?(-(alpine(3\.\d{1,2})?|bookworm|trixie))?`
	i.Cmd = []string{"valkey-server"}
	i.Vars = map[string]string{"PATH": kit.DefaultPath, "VALKEY_VERSION": ValkeyVersion}
	i.Programs["/usr/local/bin/docker-entrypoint.sh"] = valkeyBrand.entrypoint
	for _, name := range []string{"valkey", "redis"} {
		i.Programs["/usr/local/bin/"+name+"-server"] = valkeyBrand.serve
		i.Programs["/usr/local/bin/"+name+"-cli"] = valkeyBrand.cli
	}
	i.Files["/etc/passwd"] = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n" +
		"valkey:x:999:1000:Linux User,,,:/home/valkey:/bin/sh\n"
	i.Files["/etc/group"] = "root:x:0:root\nvalkey:x:1000:valkey\nnobody:x:65534:\n"
	i.Files["/etc/os-release"] = "NAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID=3.23.0\n" +
		"PRETTY_NAME=\"Alpine Linux v3.23\"\n"
	i.Size = 40 << 20
	return i
}
