package mongo

import (
	"github.com/aiopslab/aiopslab/image/mongo/internal/server"
	"github.com/aiopslab/aiopslab/image/mongo/internal/shell"
	"github.com/aiopslab/aiopslab/kit"
)

// Image is MongoDB as Docker's library has it. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/usr/bin/mongod":  Mongod,
		"/usr/bin/mongo":   shell.Mongo,
		"/usr/bin/mongosh": shell.Mongosh,
		script:             entrypoint,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"mongo"},
		Tags:       `latest|[4-8](\.\d(\.\d{1,2})?)?(-(bionic|focal|jammy|noble|xenial))?`,
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"mongod"},
		Vars: map[string]string{
			"PATH":          "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"MONGO_MAJOR":   "4.4",
			"MONGO_PACKAGE": "mongodb-org",
			"MONGO_REPO":    "repo.mongodb.org",
			"MONGO_VERSION": server.Version,
		},
		Programs: programs,
		Files: map[string]string{
			"/data/db/":                    "",
			"/data/configdb/":              "",
			"/docker-entrypoint-initdb.d/": "",
			"/tmp/":                        "",
			"/var/log/mongodb/":            "",
			"/etc/mongod.conf.orig":        originalConf,
			"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n" +
				"mongodb:x:999:999::/home/mongodb:/bin/sh\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			"/etc/group": "root:x:0:\nmongodb:x:999:\nnogroup:x:65534:\n",
			"/etc/os-release": "NAME=\"Ubuntu\"\nVERSION=\"18.04.5 LTS (Bionic Beaver)\"\nID=ubuntu\n" +
				"ID_LIKE=debian\nPRETTY_NAME=\"Ubuntu 18.04.5 LTS\"\nVERSION_ID=\"18.04\"\n",
		},
		Memory: 60 << 20,
		Size:   449 << 20,
	}
}

// originalConf is the configuration file of the package, which the image puts aside.
const originalConf = `# mongod.conf

# for documentation of all options, see:
#   http://docs.mongodb.org/manual/reference/configuration-options/

storage:
  dbPath: /var/lib/mongodb
  journal:
    enabled: true

systemLog:
  destination: file
  logAppend: true
  path: /var/log/mongodb/mongod.log

net:
  port: 27017
  bindIp: 127.0.0.1
`
