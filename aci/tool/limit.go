package tool

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// maxFile is the largest file a tool may write, in bytes.
const maxFile = 256 << 20

// limit bounds what the process may leave behind.
func limit() error {
	for resource, most := range map[int]uint64{unix.RLIMIT_FSIZE: maxFile, unix.RLIMIT_CORE: 0} {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
		l.Cur, l.Max = min(l.Cur, most), min(l.Max, most)
		if err := unix.Setrlimit(resource, &l); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
	}
	return nil
}
