// Package lab is the program aiopslab, for those who add to it in Go:
//
//	func main() {
//		lab.Main(lab.Parts{Agents: []agent.Entry{{Name: "mine", Doc: "does its best", New: newAgent}}})
//	}
//
// makes a program that is aiopslab in every respect, and in which --agent mine works. Images, applications, faults and
// problems are added in the same way. The module in examples/outside has one of each.
package lab

import (
	"context"
	"io/fs"
	"os"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/image/inside"
	"github.com/aiopslab/aiopslab/internal/builtin"
	"github.com/aiopslab/aiopslab/internal/cli"
	"github.com/aiopslab/aiopslab/kit"
)

// Parts are what a program adds to what is built in. None may have the name of one that is there.
type Parts struct {
	Agents []agent.Entry // that --agent can name
	Images []kit.Image   // that containers can run
	Apps   []*app.App    // that --app and problems can name
	Faults []*fault.Kind // that problems can name
	// Problems has documents, *.yaml, at its root. They may be about any application and any fault.
	Problems fs.FS
}

// Main does what the command line says, with these parts besides the built-in ones, and exits.
func Main(p Parts) {
	env := kit.HostEnv()
	if image, ok := inside.Image(env); ok { // It is a program of that image, and nothing else.
		os.Exit(inside.Main(context.Background(), env, builtin.Parts(p).AllImages(), image))
	}
	s := cli.Process()
	s.Parts = builtin.Parts(p)
	os.Exit(cli.Main(context.Background(), s))
}
