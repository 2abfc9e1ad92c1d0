package sockshop

import (
	"maps"

	"github.com/aiopslab/aiopslab/kit"
)

// parts are the services.
var parts = []part{
	frontEndPart, cataloguePart, cartsPart, ordersPart, paymentPart, shippingPart, queueMasterPart, userPart,
}

// Images are those of the services, each its own, and of two stores that begin with data: user-db, which is MongoDB,
// and catalogue-db, which is MySQL. The tools, by name, are what the services have in /bin.
func Images(tools map[string]kit.Program, mongo, mysql kit.Image) []kit.Image {
	list := []kit.Image{
		store("user-db", `0\.3\.0`, mongo, "users.js", usersJS()),
		store("catalogue-db", `0\.3\.0`, mysql, "dump.sql", catalogueSQL()),
	}
	for _, p := range parts {
		list = append(list, p.image(tools, p.tags))
	}
	return append(list, cataloguePart.image(tools, shiftedVersion))
}

// commands are how the families of programs are started.
var commands = map[flavour][]string{
	golang: {"/app"},
	java:   {"/usr/local/bin/java.sh", "-jar", "./app.jar"},
	node:   {"/usr/local/bin/npm", "start"},
}

func (p part) image(tools map[string]kit.Program, version string) kit.Image {
	command := commands[p.flavour]
	i := kit.Image{
		Names: []string{"weaveworksdemos/" + p.name}, Tags: version, Entrypoint: command[:1], Cmd: command[1:],
		User:     "10001",
		Vars:     map[string]string{"PATH": kit.DefaultPath},
		Programs: map[string]kit.Program{command[0]: p.main(version)},
		Files:    map[string]string{"/tmp/": ""},
		Memory:   p.memory, Size: p.size,
	}
	if p.name == "user" {
		maps.Copy(i.Vars, map[string]string{"HATEAOS": "user", "MONGO_HOST": "user-db", "USER_DATABASE": "mongodb"})
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	return i
}

// store is the image of a store with a script that it begins with.
func store(name, tags string, of kit.Image, file, script string) kit.Image {
	of.Names, of.Tags = []string{"weaveworksdemos/" + name}, tags
	of.Files = maps.Clone(of.Files)
	of.Files["/docker-entrypoint-initdb.d/"+file] = script
	return of
}
