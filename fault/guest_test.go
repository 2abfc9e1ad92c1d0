package fault

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

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

// passing is what an API server answers that is asked to pass a request on.
type passing struct{ err error }

func (p passing) DoRaw(context.Context) ([]byte, error)         { return []byte("up 1\n"), p.err }
func (p passing) Stream(context.Context) (io.ReadCloser, error) { return nil, p.err }

// On a cluster of somebody's the lab's own requests get past what disturbs a pod's network: there a disturbance shows in
// what the API server gets, if it gets anything at all, and in what users get.
func TestNetworkOfGuests(t *testing.T) {
	const usersSay = "50 of 100 requests of users failed in the last 10s"
	for name, tt := range map[string]struct {
		service string
		guest   bool
		failed  int64  // requests of users
		cut     string // off from the API server: a part of pods' names
		want    string
	}{
		"not a guest":              {"memcached-rate", false, 50, "", ""},
		"all is well":              {"memcached-rate", true, 0, "", ""},
		"users complain":           {"memcached-rate", true, 50, "", usersSay},
		"the API server complains": {"geo", true, 0, "geo", "6 of 6 requests to geo over the network failed: i/o timeout"},
		"it reaches nobody":        {"geo", true, 0, "-1", ""},
		"nor do users":             {"geo", true, 50, "-1", usersSay},
		"it reaches it":            {"geo", true, 0, "rate", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, hotel.App(), map[string]string{"memcached-rate": "n1", "geo": "n1", "rate": "n1", "user": "n1"})
			l.env.Dial, l.env.Guest = serve(t, remember), tt.guest
			l.env.Load = func(context.Context) (*workload.Snapshot, error) {
				return &workload.Snapshot{Windows: []workload.Window{{Name: "10s", Total: workload.SLI{Requests: 100, Failed: tt.failed}}}}, nil
			}
			l.PrependProxyReactor("pods", func(action clienttesting.Action) (bool, rest.ResponseWrapper, error) {
				get := action.(clienttesting.ProxyGetAction)
				if get.GetScheme() != "http" || get.GetPort() != "9464" || get.GetPath() != "metrics" {
					t.Errorf("asked for %s, %s, %s", get.GetScheme(), get.GetPort(), get.GetPath())
				}
				if tt.cut != "" && strings.Contains(get.GetName(), tt.cut) {
					return true, passing{errors.New("i/o timeout")}, nil
				}
				return true, passing{}, nil
			})
			pods, err := podsOf(t.Context(), l.env, tt.service)
			if err != nil || len(pods) != 1 {
				t.Fatal(pods, err)
			}
			probe := defaultNetwork(time.Minute).probe
			if tt.service == "geo" { // Nobody here answers for it.
				probe = func(ctx context.Context, e *Env, service string) (string, error) {
					return defaultNetwork(time.Minute).fromAfar(ctx, e, service, pods)
				}
			}
			if got, err := probe(t.Context(), l.env, tt.service); err != nil || got != tt.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
