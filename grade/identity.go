package grade

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// Serving is who answers for a Service.
type Serving struct {
	Service string `json:"service"`
	Kind    string `json:"kind,omitempty"` // of the application's service of that name
	// Ports are where the Service sends to: "8083 to 8083".
	Ports []string `json:"ports,omitempty"`
	// By are the ready servers that it sends to, one of each sort.
	By []Server `json:"by,omitempty"`
	// Wrong is what is wrong with the answer to a question that only the application can answer. The question is
	// asked only if something above differs from the baseline.
	Wrong string `json:"wrong,omitempty"`
}

// Server is a pod, or something else that a Service sends to.
type Server struct {
	Workload string    `json:"workload,omitempty"` // "deployment/geo"
	Programs []Program `json:"programs,omitempty"` // of its containers; none if it is no pod
	Address  string    `json:"address,omitempty"`  // of what is no pod
}

// Program is what a container runs.
type Program struct {
	Image string `json:"image"`
	// Command replaces the image's own, if it is there. Args are not part of it.
	Command string `json:"command,omitempty"`
}

// infrastructure is the kind of services that users do not see, so that no load tells whether they are
// real.
const infrastructure = "infrastructure"

// deserted are the Services that nobody answers for any more.
func deserted(baseline, now Look) (list []string) {
	for _, b := range baseline.Serving {
		i := slices.IndexFunc(now.Serving, func(s Serving) bool { return s.Service == b.Service })
		if i >= 0 && len(b.By) > 0 && len(now.Serving[i].By) == 0 {
			list = append(list, "nobody answers for service "+b.Service)
		}
	}
	return list
}

// impostors are the Services that are answered by something else than the application. That another
// workload, image or program serves is not wrong by itself: it counts only if what users get, or the
// answer to the application's own question, is not right. Of what users do not see, it always counts.
func impostors(baseline, now Look, unwell bool) (list []string) {
	for _, b := range baseline.Serving {
		i := slices.IndexFunc(now.Serving, func(s Serving) bool { return s.Service == b.Service })
		if i < 0 {
			continue
		}
		n := now.Serving[i]
		foreign := ""
		for _, s := range n.By {
			if foreign = s.foreign(b.By); foreign != "" {
				break
			}
		}
		switch {
		case foreign != "" && (unwell || n.Wrong != "" || b.Kind == infrastructure):
			list = append(list, fmt.Sprintf("service %s is answered by %s, not by the application", b.Service, foreign))
		case foreign == "" && n.Wrong != "" && len(n.By) > 0 && len(now.Symptoms) == 0:
			list = append(list, fmt.Sprintf("service %s does not answer as the application does: %s", b.Service,
				n.Wrong))
		}
	}
	return list
}

// foreign says what a server is, unless it runs a program of the baseline's servers.
func (s Server) foreign(baseline []Server) string {
	if len(s.Programs) == 0 {
		return s.Address
	}
	image := false
	for _, b := range baseline {
		for _, want := range b.Programs {
			for _, p := range s.Programs {
				if repository(p.Image) != repository(want.Image) {
					continue
				}
				if path.Base(p.Command) == path.Base(want.Command) {
					return ""
				}
				image = true
			}
		}
	}
	var names []string
	for _, p := range s.Programs {
		name := repository(p.Image)
		if image && p.Command != "" {
			name += " running " + p.Command
		}
		names = append(names, name)
	}
	return strings.Join(names, " and ")
}

// repository is an image without its tag and digest, as people write it: "mongo".
func repository(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	return reference.FamiliarName(named)
}
