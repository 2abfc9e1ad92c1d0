//go:build !linux

package proc

import "os/exec"

// Apart reports whether the kernel can keep a program from signalling and inspecting the lab.
func Apart() bool { return false }

// startApart starts a command, with the rights of this process.
func startApart(cmd *exec.Cmd) error { return cmd.Start() }
