package fault

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/workload"
)

// remember answers as memcached does.
func remember(ln net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer c.Close()
			for in := bufio.NewScanner(c); in.Scan(); {
				answer := "VERSION 1.6.40\r\n"
				if strings.HasPrefix(in.Text(), "stats") {
					answer = "STAT pid 1\r\nEND\r\n"
				}
				_, _ = io.WriteString(c, answer)
			}
		})
	}
}

// On a cluster of somebody's the lab's own requests get past what disturbs a pod's network: there a disturbance shows in
// what users get.
func TestNetworkOfGuests(t *testing.T) {
	l := newLab(t, hotel.App(), map[string]string{"memcached-rate": "n1"})
	l.env.Dial = serve(t, remember)
	var failed int64
	l.env.Load = func() workload.Snapshot {
		return workload.Snapshot{Windows: []workload.Window{{Name: "10s", Total: workload.SLI{Requests: 100, Failed: failed}}}}
	}
	for _, tt := range []struct {
		guest  bool
		failed int64
		want   string
	}{
		{false, 50, ""},
		{true, 0, ""},
		{true, 50, "50 of 100 requests of users failed in the last 10s"},
	} {
		l.env.Guest, failed = tt.guest, tt.failed
		got, err := defaultNetwork(time.Minute).probe(t.Context(), l.env, "memcached-rate")
		if err != nil || !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}
