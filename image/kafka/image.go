package kafka

import "github.com/aiopslab/aiopslab/kit"

// Version is the release that this behaves like.
const Version = "3.9.1"

// home is where the image has Kafka.
const home = "/opt/kafka"

// Image is a Kafka broker with its tools. The other tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/etc/kafka/docker/run":                 Main,
		home + "/bin/kafka-server-start.sh":     Main,
		home + "/bin/kafka-topics.sh":           Topics,
		home + "/bin/kafka-consumer-groups.sh":  Groups,
		home + "/bin/kafka-console-consumer.sh": ConsoleConsumer,
		home + "/bin/kafka-console-producer.sh": ConsoleProducer,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"apache/kafka", "ghcr.io/open-telemetry/demo"},
		Tags:       `latest|3\.9\.\d{1,2}|2\.[012]\.\d-kafka`,
		Entrypoint: []string{"/etc/kafka/docker/run"},
		WorkDir:    home,
		User:       "1000:1000",
		Vars:       map[string]string{"PATH": kit.DefaultPath},
		Programs:   programs,
		Files: map[string]string{
			"/tmp/":                "",
			"/var/lib/kafka/data/": "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/ash\n" +
				"appuser:x:1000:1000:Linux User,,,:/home/appuser:/bin/ash\n" +
				"nobody:x:65534:65534:nobody:/:/sbin/nologin\n",
			"/etc/group": "root:x:0:root\nappuser:x:1000:\nnobody:x:65534:\n",
			"/etc/os-release": "NAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID=3.21.3\n" +
				"PRETTY_NAME=\"Alpine Linux v3.21\"\n",
		},
		Memory: 360 << 20,
		Size:   392 << 20,
	}
}
