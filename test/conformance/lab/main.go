// Command lab is aiopslab with the images that Kubernetes' conformance suite needs.
package main

import (
	"github.com/aiopslab/aiopslab/image/e2e"
	"github.com/aiopslab/aiopslab/lab"
	"github.com/aiopslab/aiopslab/shell"
)

func main() { lab.Main(lab.Parts{Images: e2e.Images(shell.Tools())}) }
