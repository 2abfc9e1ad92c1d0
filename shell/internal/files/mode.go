package files

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// modeString is how ls shows the type and permissions of a file.
func modeString(m fs.FileMode) string {
	b := []byte("----------")
	switch {
	case m.IsDir():
		b[0] = 'd'
	case m&fs.ModeSymlink != 0:
		b[0] = 'l'
	case m&fs.ModeCharDevice != 0:
		b[0] = 'c'
	case m&fs.ModeDevice != 0:
		b[0] = 'b'
	case m&fs.ModeNamedPipe != 0:
		b[0] = 'p'
	case m&fs.ModeSocket != 0:
		b[0] = 's'
	}
	for i, c := range "rwxrwxrwx" {
		if m&(1<<(8-i)) != 0 {
			b[i+1] = byte(c)
		}
	}
	special := func(bit fs.FileMode, at int, with, without byte) {
		if m&bit != 0 {
			if b[at] == 'x' {
				b[at] = with
			} else {
				b[at] = without
			}
		}
	}
	special(fs.ModeSetuid, 3, 's', 'S')
	special(fs.ModeSetgid, 6, 's', 'S')
	special(fs.ModeSticky, 9, 't', 'T')
	return string(b)
}

// octalMode is the permissions as chmod takes them.
func octalMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	for bit, value := range map[fs.FileMode]uint32{
		fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000,
		fs.ModeSticky: 0o1000,
	} {
		if m&bit != 0 {
			n |= value
		}
	}
	return n
}

func fromOctal(n uint64) fs.FileMode {
	m := fs.FileMode(n & 0o777)
	for bit, value := range map[fs.FileMode]uint64{
		fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000,
		fs.ModeSticky: 0o1000,
	} {
		if n&value != 0 {
			m |= bit
		}
	}
	return m
}

// typeName is what stat calls a kind of file.
func typeName(fi fs.FileInfo) string {
	m := fi.Mode()
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeCharDevice != 0:
		return "character special file"
	case m&fs.ModeDevice != 0:
		return "block special file"
	case m&fs.ModeNamedPipe != 0:
		return "fifo"
	case m&fs.ModeSocket != 0:
		return "socket"
	case fi.Size() == 0:
		return "regular empty file"
	}
	return "regular file"
}

// newFileMask is what new files do not get, as everywhere in a container.
const newFileMask = 0o022

// parseMode applies a mode such as 755, u+x or go-w,a=r to one that a file has.
func parseMode(text string, old fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(text, 8, 16); err == nil && n <= 0o7777 {
		return old&^(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) | fromOctal(n), nil
	}
	bad := fmt.Errorf("invalid mode '%s'", text)
	mode := old
	for _, clause := range strings.Split(text, ",") {
		at := strings.IndexAny(clause, "+-=")
		if at < 0 {
			return 0, bad
		}
		who, mask := clause[:at], fs.FileMode(0)
		for _, w := range who {
			bits, ok := map[rune]fs.FileMode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[w]
			if !ok {
				return 0, bad
			}
			mask |= bits
		}
		implied := mask == 0
		if implied {
			mask = 0o777
		}
		rest := clause[at:]
		for rest != "" {
			op := rest[0]
			end := strings.IndexAny(rest[1:], "+-=") + 1
			if end == 0 {
				end = len(rest)
			}
			bits, err := modeBits(rest[1:end], mask, who, mode)
			if err != nil {
				return 0, bad
			}
			if implied {
				bits &^= newFileMask
			}
			switch op {
			case '+':
				mode |= bits
			case '-':
				mode &^= bits
			case '=':
				mode = mode&^mask | bits
			}
			rest = rest[end:]
		}
	}
	return mode, nil
}

// modeBits are the bits that letters such as rwX stand for.
func modeBits(letters string, mask fs.FileMode, who string, old fs.FileMode) (bits fs.FileMode, err error) {
	for _, c := range letters {
		switch c {
		case 'r':
			bits |= 0o444 & mask
		case 'w':
			bits |= 0o222 & mask
		case 'x':
			bits |= 0o111 & mask
		case 'X':
			if old.IsDir() || old&0o111 != 0 {
				bits |= 0o111 & mask
			}
		case 's':
			if who == "" || strings.ContainsAny(who, "ua") {
				bits |= fs.ModeSetuid
			}
			if who == "" || strings.ContainsAny(who, "ga") {
				bits |= fs.ModeSetgid
			}
		case 't':
			bits |= fs.ModeSticky
		case 'u', 'g', 'o':
			part := old.Perm() >> map[rune]int{'u': 6, 'g': 3, 'o': 0}[c] & 7
			bits |= (part | part<<3 | part<<6) & mask
		default:
			return 0, fmt.Errorf("invalid mode")
		}
	}
	return bits, nil
}
