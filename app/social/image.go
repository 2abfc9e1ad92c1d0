package social

import "github.com/aiopslab/aiopslab/kit"

var parts = []part{
	uniqueIDService, textService, urlShortenService, userMentionService, userService, mediaService,
	socialGraphService, postStorageService, userTimelineService, homeTimelineService, composePostService,
}

// programs are the services by the names of their executables.
func programs() map[string]kit.Program {
	m := map[string]kit.Program{"nginx-thrift": nginxMain, "media-frontend": mediaFrontendMain}
	for _, p := range parts {
		m[p.name] = p.main
	}
	return m
}

// Image has every service as a program of that name. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:    []string{"aiopslab/social-network"},
		Tags:     `latest|v1(\.\d+)*`,
		Vars:     map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		WorkDir:  "/social-network-microservices",
		Programs: map[string]kit.Program{},
		Memory:   12 << 20,
		Size:     160 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	for name, p := range programs() {
		i.Programs["/usr/local/bin/"+name] = p
	}
	return i
}
