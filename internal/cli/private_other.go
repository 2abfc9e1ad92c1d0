//go:build !linux

package cli

// keepMemory does nothing: only Linux lets a process keep its memory from others of the same user.
func keepMemory() {}
