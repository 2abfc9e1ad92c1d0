package embedded

import (
	"slices"
	"strings"
	"testing"
)

// The lines of a mapping that matter, and some whose names look like hexadecimal numbers.
func smaps(first, dirty, anonymous, swap string) string {
	return first + "\nSize:  16 kB\nRss:   16 kB\nPrivate_Dirty:   " + dirty + " kB\nAnonymous:   " + anonymous +
		" kB\nAnonHugePages:   0 kB\nFilePmdMapped:   0 kB\nSwap:   " + swap + " kB\nSwapPss:   0 kB\nVmFlags: rd ex mr mw me\n"
}

func TestCleanMappings(t *testing.T) {
	const file = "/usr/bin/aiopslab"
	text := strings.Join([]string{
		smaps("00400000-04719000 r-xp 00000000 fe:00 42    "+file, "0", "0", "0"),
		smaps("04719000-09574000 r--p 04319000 fe:00 42    "+file, "4", "0", "0"),     // the file is not on disk yet
		smaps("09574000-096a0000 rw-p 09174000 fe:00 42    "+file, "0", "0", "0"),     // can be written to
		smaps("0a000000-0a001000 r--p 00000000 fe:00 42    "+file, "4", "4", "0"),     // was written to
		smaps("0b000000-0b001000 r--p 00000000 fe:00 42    "+file, "0", "0", "4"),     // was written to, and out to swap
		smaps("0c000000-0c001000 r-xp 00000000 fe:00 43    /opt"+file, "0", "0", "0"), // another file
		smaps("7f0000000000-7f0000001000 r--p 00000000 00:00 0 ", "0", "0", "0"),      // no file
		smaps("7ffc00000000-7ffc00021000 r-xp 00000000 00:00 0                 [vdso]", "0", "0", "0"),
	}, "")
	want := []mapping{{0x400000, 0x4719000}, {0x4719000, 0x9574000}}
	if got := cleanMappings(strings.NewReader(text), file); !slices.Equal(got, want) {
		t.Errorf("mappings %x, want %x", got, want)
	}
}
