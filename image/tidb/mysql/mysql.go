// Package mysql is the image mysql: one server that speaks MySQL's protocol, with a database of its own. It is the
// front of TiDB (package tidb) over SQLite in memory, and takes the same SQL.
package mysql

import (
	"github.com/aiopslab/aiopslab/image/tidb/internal/client"
	"github.com/aiopslab/aiopslab/image/tidb/internal/sql"
	"github.com/aiopslab/aiopslab/kit"
)

// Version is the release that this behaves like.
const Version = "5.7.44"

// Image is MySQL as Docker's library has it. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	server := sql.MySQL(Version)
	programs := map[string]kit.Program{
		"/usr/local/bin/docker-entrypoint.sh": server,
		"/usr/sbin/mysqld":                    server,
		"/usr/bin/mysql":                      client.Main(sql.MySQLPort),
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"mysql"},
		Tags:       `5\.7(\.\d{1,2})?`,
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"mysqld"},
		Vars: map[string]string{
			"PATH":        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"MYSQL_MAJOR": "5.7", "MYSQL_VERSION": Version,
		},
		Programs: programs,
		Files: map[string]string{
			"/docker-entrypoint-initdb.d/": "",
			"/var/lib/mysql/":              "",
			"/tmp/":                        "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n" +
				"mysql:x:999:999::/var/lib/mysql:/bin/false\n",
			"/etc/group":      "root:x:0:\nmysql:x:999:\n",
			"/etc/os-release": "NAME=\"Oracle Linux Server\"\nID=\"ol\"\nVERSION_ID=\"7.9\"\n",
		},
		Memory: 90 << 20,
		Size:   501 << 20,
	}
}
