package server

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// ownerOf is the user to whom the socket at an address of this machine belongs, as the kernel lists it.
func ownerOf(at netip.AddrPort) (uid int, known bool) {
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		uid, known = ownerIn(f, at)
		f.Close()
		if known {
			return uid, true
		}
	}
	return 0, false
}

// ownerIn looks a socket up in a list of them: the second column is its own address, the eighth its user.
func ownerIn(list io.Reader, at netip.AddrPort) (uid int, known bool) {
	for s := bufio.NewScanner(list); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 8 {
			continue
		}
		local, ok := socketAddress(fields[1])
		if !ok || local != netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) {
			continue
		}
		if uid, err := strconv.Atoi(fields[7]); err == nil {
			return uid, true
		}
	}
	return 0, false
}

// socketAddress reads an address as the kernel prints it: words of four bytes in the machine's order, and the port.
func socketAddress(text string) (a netip.AddrPort, ok bool) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return a, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok && err == nil
}
