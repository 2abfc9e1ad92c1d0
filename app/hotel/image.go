package hotel

import (
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// programs are the services by name.
var programs = map[string]kit.Program{
	"frontend": frontendMain, "search": searchMain, "geo": geoMain, "rate": rateMain, "profile": profileMain,
	"recommendation": recommendationMain, "user": userMain, "reservation": reservationMain,
}

// Image has every service as a program of that name. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:    []string{"aiopslab/hotel-reservation"},
		Tags:     `latest|v1(\.\d+)*`,
		Vars:     map[string]string{"PATH": "/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		WorkDir:  "/workspace",
		Programs: map[string]kit.Program{},
		Files:    map[string]string{"/workspace/config.json": defaultConfig},
		Memory:   14 << 20,
		Size:     180 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	for name, p := range programs {
		i.Programs["/go/bin/"+name] = p
	}
	return i
}

// GeoImage is a build of the service geo alone that was published by mistake: the configuration in it
// is that of a developer's machine, where the database listens on another port.
func GeoImage(tools map[string]kit.Program) kit.Image {
	i := Image(tools)
	i.Names, i.Tags = []string{"yinfangchen/geo"}, "app3"
	i.Cmd = []string{"geo"}
	for name := range programs {
		if name != "geo" {
			delete(i.Programs, "/go/bin/"+name)
		}
	}
	i.Files = map[string]string{
		"/workspace/config.json": strings.Replace(defaultConfig, `"mongodb-geo:27017"`, `"mongodb-geo:27777"`, 1),
	}
	return i
}
