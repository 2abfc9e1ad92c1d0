// Package lab is the program aiopslab, for those who add agents in Go:
//
//	func main() {
//		lab.Main(agent.Entry{Name: "mine", Doc: "does its best", New: newAgent})
//	}
//
// makes a program that is aiopslab in every respect, and in which --agent mine works.
package lab

import (
	"context"
	"os"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/cli"
)

// Main does what the command line says, with these agents besides the built-in ones, and exits.
func Main(agents ...agent.Entry) {
	s := cli.Process()
	s.Agents = agents
	os.Exit(cli.Main(context.Background(), s))
}
