package kittest

import (
	"os"
	"sync/atomic"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// ScarceMemory is a kernel that refuses memory once it is told to.
type ScarceMemory struct {
	kit.Memory
	Refuses atomic.Bool
}

// Add implements kit.Memory.
func (m *ScarceMemory) Add(n int64) error {
	if n > 0 && m.Refuses.Load() {
		return os.NewSyscallError("mmap", syscall.ENOMEM)
	}
	return m.Memory.Add(n)
}
