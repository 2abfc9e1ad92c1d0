package rabbitmq

import "github.com/aiopslab/aiopslab/kit"

// Version is the release that this behaves like.
const Version = "3.13.7"

// Images are RabbitMQ without and with the management plugin, and an exporter of what that tells. The tools, by name,
// are what the first two have in /bin.
func Images(tools map[string]kit.Program) []kit.Image {
	managed := Image(tools)
	managed.Tags = `management|3(\.\d{1,2}){0,2}-management(-alpine)?`
	managed.Programs["/usr/local/bin/docker-entrypoint.sh"] = Managed
	managed.Programs["/opt/rabbitmq/sbin/rabbitmq-server"] = Managed
	return []kit.Image{Image(tools), managed, exporterImage()}
}

// Image is a RabbitMQ node with its tools. The other tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/usr/local/bin/docker-entrypoint.sh":     Main,
		"/opt/rabbitmq/sbin/rabbitmq-server":      Main,
		"/opt/rabbitmq/sbin/rabbitmqctl":          Ctl,
		"/opt/rabbitmq/sbin/rabbitmq-diagnostics": Ctl,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"rabbitmq"},
		Tags:       `latest|3(\.\d{1,2}){0,2}(-alpine)?`,
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"rabbitmq-server"},
		Vars: map[string]string{
			"PATH": "/opt/rabbitmq/sbin:" + kit.DefaultPath, "RABBITMQ_DATA_DIR": dataDir, "RABBITMQ_VERSION": Version,
			"HOME": dataDir,
		},
		Programs: programs,
		Files: map[string]string{
			"/tmp/":       "",
			"/var/log/":   "",
			dataDir + "/": "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nrabbitmq:x:999:999::/var/lib/rabbitmq:/bin/sh\n",
			"/etc/group":  "root:x:0:\nrabbitmq:x:999:\n",
			"/etc/os-release": "NAME=\"Ubuntu\"\nID=ubuntu\nVERSION_ID=\"22.04\"\n" +
				"PRETTY_NAME=\"Ubuntu 22.04 LTS\"\n",
			"/etc/rabbitmq/":     "",
			"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		},
		Memory: 110 << 20,
		Size:   208 << 20,
	}
}
