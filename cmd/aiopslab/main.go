// Command aiopslab is a lab in which AI agents learn to run clouds.
package main

import "github.com/aiopslab/aiopslab/lab"

func main() { lab.Main(lab.Parts{}) }
