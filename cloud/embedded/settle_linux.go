package embedded

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// releaseCode lets go of the pages of the program's own file. The start touches most of the program;
// what runs from then on is a fraction of it, and is mapped again, from the page cache, as it is
// needed: page by page, not in the huge ones that the cache may hold it in. Errors only cost memory.
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
	for _, m := range cleanMappings(f, self) {
		pages := unsafe.Slice((*byte)(mapped(m.start)), m.end-m.start)
		_ = unix.Madvise(pages, unix.MADV_NOHUGEPAGE)
		_ = unix.Madvise(pages, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings reads a smaps file and returns the read-only mappings of a file that hold nothing but
// the file's content.
func cleanMappings(smaps io.Reader, file string) (list []mapping) {
	var m mapping
	var candidate bool
	for s := bufio.NewScanner(smaps); s.Scan(); {
		line := s.Text()
		if first, ok := parseMapping(line); ok {
			m = first
			candidate = strings.HasSuffix(line, " "+file) && !strings.Contains(strings.Fields(line)[1], "w")
			continue
		}
		switch field, value, _ := strings.Cut(line, ":"); field {
		case "Anonymous", "Swap": // Not Private_Dirty: the file itself may not be on disk yet.
			candidate = candidate && strings.TrimSpace(value) == "0 kB"
		case "VmFlags": // The last line of a mapping.
			if candidate {
				list = append(list, m)
			}
		}
	}
	return list
}

// parseMapping reads the first line of a mapping: "00400000-04719000 r-xp 00000000 fe:00 42 /path".
func parseMapping(line string) (m mapping, ok bool) {
	addresses, _, _ := strings.Cut(line, " ")
	low, high, ok := strings.Cut(addresses, "-")
	if !ok {
		return m, false
	}
	start, err1 := strconv.ParseUint(low, 16, 64)
	end, err2 := strconv.ParseUint(high, 16, 64)
	return mapping{uintptr(start), uintptr(end)}, err1 == nil && err2 == nil
}

// mapped turns an address from the kernel, which is not the garbage collector's, into a pointer.
func mapped(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
