// Command aiopslab is a lab in which AI agents learn to run clouds.
package main

import (
	"context"
	"os"

	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), &cli.State{
		Args: os.Args, Env: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())),
	}))
}
