//go:build !linux

package tool

import (
	"errors"
	"syscall"
)

func ownNamespace(*syscall.SysProcAttr) {}

func changeRoot(string) error { return errors.New("this system cannot change the root of a process") }

func dropCapabilities(bool) error { return nil }

// OwnRoot reports whether processes of [Command] can have a root of their own here.
func OwnRoot() bool { return false }
