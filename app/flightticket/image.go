package flightticket

import (
	"github.com/aiopslab/aiopslab/app/flightticket/whisk"
	"github.com/aiopslab/aiopslab/kit"
)

// Images are what the containers of FlightTicket run. The tools, by name, are what they have in /bin.
func Images(tools map[string]kit.Program) []kit.Image {
	return []kit.Image{
		image(tools, "aiopslab/flight-ticket", "flight-action", actionMain, 14<<20),
		image(tools, "aiopslab/whisk-controller", "whisk-controller", whisk.Main, 40<<20),
	}
}

// image is one of them, with one program.
func image(tools map[string]kit.Program, name, program string, main kit.Program, memory int64) kit.Image {
	i := kit.Image{
		Names: []string{name}, Tags: `latest|v1(\.\d+)*`, Entrypoint: []string{program},
		Vars:     map[string]string{"PATH": "/app:" + kit.DefaultPath},
		Programs: map[string]kit.Program{"/app/" + program: main},
		Memory:   memory, Size: 60 << 20,
	}
	for tool, p := range tools {
		i.Programs["/bin/"+tool] = p
	}
	return i
}
