package postgres

import "github.com/aiopslab/aiopslab/kit"

// Version is the release that this behaves like.
const Version = "17.6"

const bin = "/usr/lib/postgresql/17/bin"

// Image is PostgreSQL as Docker's library has it. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/usr/local/bin/docker-entrypoint.sh": Entrypoint,
		bin + "/postgres":                     Entrypoint,
		"/usr/bin/psql":                       PSQL,
		"/usr/bin/pg_isready":                 IsReady,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"postgres"},
		Tags:       `latest|1[4567](\.\d{1,2})?(-(alpine(3\.\d{1,2})?|bookworm|trixie))?`,
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"postgres"},
		Vars: map[string]string{
			"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + bin, "PG_MAJOR": "17",
			"PG_VERSION": Version, "PGDATA": "/var/lib/postgresql/data",
		},
		Programs: programs,
		Files: map[string]string{
			"/docker-entrypoint-initdb.d/": "",
			"/var/lib/postgresql/data/":    "",
			"/tmp/":                        "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n" +
				"postgres:x:999:999::/var/lib/postgresql:/bin/bash\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			"/etc/group":      "root:x:0:\npostgres:x:999:\nnogroup:x:65534:\n",
			"/etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian GNU/Linux\"\nID=debian\n",
		},
		Memory: 36 << 20,
		Size:   450 << 20,
	}
}
