package memcached

import (
	"context"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Image is memcached. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/usr/local/bin/memcached":            Main,
		"/usr/local/bin/docker-entrypoint.sh": entrypoint,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"memcached"},
		Tags:       `latest|alpine|1(\.[456](\.\d{1,2})?)?(-(alpine(3\.\d{1,2})?|bookworm|bullseye|buster|trixie))?`,
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"memcached"},
		User:       "11211:11211",
		Vars:       map[string]string{"PATH": kit.DefaultPath, "MEMCACHED_VERSION": Version},
		Programs:   programs,
		Files: map[string]string{
			"/tmp/": "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
				"memcache:x:11211:11211::/home/memcache:/bin/sh\n",
			"/etc/group": "root:x:0:\nmemcache:x:11211:\nnogroup:x:65534:\n",
			"/etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n" +
				"VERSION_ID=\"12\"\nID=debian\n",
		},
		Memory: 3 << 20,
		Size:   84 << 20,
	}
}

// entrypoint becomes the command it is given, which is memcached if it is only options.
func entrypoint(ctx context.Context, env *kit.Env) error {
	command := env.Args[1:]
	if len(command) == 0 {
		return nil
	}
	if strings.HasPrefix(command[0], "-") {
		command = append([]string{"memcached"}, command...)
	}
	if command[0] == "memcached" {
		e := *env // It stays the same process.
		e.Args = command
		return Main(ctx, &e)
	}
	p, err := env.Procs.Start(ctx, env.Child(command...))
	if err != nil {
		fmt.Fprintf(env.Stderr, "/usr/local/bin/docker-entrypoint.sh: %v\n", err)
		return kit.Exit(kit.ExitNotFound)
	}
	return kit.Exit(p.Wait())
}
