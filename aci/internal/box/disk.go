package box

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	// block is what the smallest file takes, so that a flood of them is no way around the limit.
	block = 4096
	// maxDepth is how deep directories may be. Looking at deeper ones costs the square of it.
	maxDepth = 128
	// maxName is the longest path, as the kernel has it.
	maxName = 4096
)

// measure adds up what the files below a root take. Directories that are too deep count as a full
// disk: nothing but rm works then.
func measure(root *os.Root) (used int64) {
	seen := map[uint64]bool{} // files with several names
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // What cannot be looked at does not count.
		}
		fi, err := d.Info()
		if err != nil {
			return nil
		}
		used += block
		if d.IsDir() {
			if strings.Count(name, "/") >= maxDepth {
				used = tooDeep
				return fs.SkipAll
			}
			return nil
		}
		if s, ok := fi.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			if seen[s.Ino] {
				return nil
			}
			seen[s.Ino] = true
		}
		used += fi.Size()
		return nil
	})
	return used
}

// tooDeep is the size of a tree that cannot be looked at.
const tooDeep = 1 << 60
