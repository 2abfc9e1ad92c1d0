package embedded

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// releaseCode lets go of the pages of the program's own file. The start touches most of the program;
// what runs from then on is a fraction of it, and is mapped again, from the page cache, as it is
// needed. Mappings that hold anything but the file's content are left alone. Errors only cost memory.
func releaseCode() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	var start, end uintptr
	var code, clean bool
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		var perm string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &perm); n == 3 {
			code, clean = strings.HasSuffix(line, self) && !strings.Contains(perm, "w"), true
			continue
		}
		switch field, value, _ := strings.Cut(line, ":"); field {
		case "Private_Dirty", "Anonymous":
			clean = clean && strings.TrimSpace(value) == "0 kB"
		case "VmFlags": // The last line of a mapping.
			if code && clean {
				_ = unix.Madvise(unsafe.Slice((*byte)(mapped(start)), end-start), unix.MADV_DONTNEED)
			}
		}
	}
}

// mapped turns an address from the kernel, which is not the garbage collector's, into a pointer.
func mapped(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
