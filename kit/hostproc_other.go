//go:build !linux

package kit

import "os"

// hostList lists the program itself.
func hostList() []ProcessInfo {
	return []ProcessInfo{{
		PID: os.Getpid(), Parent: os.Getppid(), Args: os.Args, User: User{UID: os.Getuid(), GID: os.Getgid()},
	}}
}

func hostMemoryInfo(used int64) MemoryInfo { return MemoryInfo{Used: used} }

// Sockets implements SocketLister. None are known.
func (hostNetwork) Sockets() []Socket { return nil }
