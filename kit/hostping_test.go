package kit

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

func TestHostPing(t *testing.T) {
	pinger := hostNetwork{}
	ip, took, err := pinger.Ping(t.Context(), "127.0.0.1")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("it takes root")
	}
	if err != nil || !ip.Equal(net.IPv4(127, 0, 0, 1)) || took <= 0 {
		t.Errorf("%v, %v, %v", ip, took, err)
	}
	if dns, ok := errors.AsType[*net.DNSError](second(pinger.Ping(t.Context(), "nosuch.invalid"))); !ok {
		t.Errorf("a name that nobody has: %v", dns)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second(pinger.Ping(ctx, "127.0.0.1")); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
}

func second(_ net.IP, _ time.Duration, err error) error { return err }
