//go:build !linux

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// redirect has one descriptor be another.
func redirect(from, to int) error { return unix.Dup2(from, to) }

// attributes put the process in a group of its own. It ends with its supervisor because its standard
// input does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tree is the process alone: others cannot be told apart.
func tree(pid int) []int { return []int{pid} }

// memory is not known here, so there is no ceiling.
func memory(int) int64 { return 0 }
