package index

import (
	"os"
	"syscall"
)

// changed is when the inode of a file was changed last, which no program can set.
func changed(info os.FileInfo) int64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Ctim.Nano()
}
