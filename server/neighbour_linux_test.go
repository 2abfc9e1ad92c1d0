package server

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// The kernel tells whose a socket of this machine is.
func TestOwnerOf(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			continue // There is no IPv6 everywhere.
		}
		defer l.Close()
		uid, known := ownerOf(netip.MustParseAddrPort(l.Addr().String()))
		if !known || uid != os.Geteuid() {
			t.Errorf("%s belongs to %d, %v", l.Addr(), uid, known)
		}
	}
	list := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 20000 1
   1: 0000000000000000FFFF00000100007F:1F91 00000000000000000000000000000000:0000 0A 0:0 00:0 00000000  1002 0 1
   2: nonsense
`
	for address, want := range map[string]int{"127.0.0.1:8080": 1001, "127.0.0.1:8081": 1002, "[::ffff:127.0.0.1]:8080": 1001, "127.0.0.2:8080": 0} {
		if uid, known := ownerIn(strings.NewReader(list), netip.MustParseAddrPort(address)); known != (want > 0) || uid != want {
			t.Errorf("%s belongs to %d, %v", address, uid, known)
		}
	}
}
