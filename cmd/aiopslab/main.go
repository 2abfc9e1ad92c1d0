// Command aiopslab is a lab in which AI agents learn to run clouds.
package main

import (
	"context"
	"os"

	"github.com/aiopslab/aiopslab/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), cli.Process()))
}
