// Command mylab is aiopslab with an image, an application, a fault, problems and an agent of one's own. It is a
// module of its own: copy the directory and go on from there. README.md tells how.
package main

import (
	"embed"
	"io/fs"
	"log"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/lab"
)

//go:embed notes/app.yaml notes/manifests/*.yaml notes/mixes/*.yaml problems/*.yaml
var files embed.FS

func main() {
	notes, err := app.ReadFS("notes", dir("notes"))
	if err != nil {
		log.Fatal(err)
	}
	lab.Main(lab.Parts{
		Images:   []kit.Image{notesImage()},
		Apps:     []*app.App{notes},
		Faults:   []*fault.Kind{wrongStore()},
		Problems: dir("problems"),
		Agents:   []agent.Entry{{Name: "keeper", Doc: "looks after notes, and nothing else", New: newKeeper}},
	})
}

// dir is one of the directories that are part of the program.
func dir(name string) fs.FS {
	d, err := fs.Sub(files, name)
	if err != nil {
		log.Fatal(err)
	}
	return d
}
