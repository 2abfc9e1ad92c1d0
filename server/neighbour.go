package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
)

// A client that is a process of the server's own user, on the same machine, can read what the user can: the records of
// other runs, and where the system lets it, the memory of processes. The server cannot confine it, and so tells of it.

// neighbour reports whether whoever sent a request may be such a process. It is not if it is on another machine, or
// belongs to another user.
func neighbour(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return true
	}
	if !here(remote.Addr().Unmap()) {
		return false
	}
	uid, known := ownerOf(remote)
	return !known || uid == os.Geteuid()
}

// here reports whether an address is one of this machine.
func here(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, own := range list {
		if p, err := netip.ParsePrefix(own.String()); err == nil && p.Addr().Unmap() == a.WithZone("") {
			return true
		}
	}
	return false
}

type nearKey struct{}

func fromNear(ctx context.Context, near bool) context.Context {
	return context.WithValue(ctx, nearKey{}, near)
}

// near is what [fromNear] was told.
func near(ctx context.Context) bool {
	yes, _ := ctx.Value(nearKey{}).(bool)
	return yes
}
