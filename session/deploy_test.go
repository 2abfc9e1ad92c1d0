package session

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
)

// walled is a cluster of somebody's that lets nobody in before the given dial.
type walled struct {
	cloud.Cloud
	dials, opens int
}

func (w *walled) Tenancy() cloud.Tenancy { return cloud.Tenancy{Run: "r1"} }

func (w *walled) Dial(context.Context, string, string) (net.Conn, error) {
	if w.dials++; w.dials < w.opens || w.opens == 0 {
		return nil, errors.New("forward a port of pod front-1: Forbidden")
	}
	near, _ := net.Pipe()
	return near, nil
}

// Where ports cannot be forwarded, that is what is told.
func TestReach(t *testing.T) {
	shop := &app.App{Namespace: "shop", Frontend: app.Endpoint{Service: "front", Port: 80}}
	for _, test := range []struct {
		opens int
		want  string
	}{
		{opens: 1},
		{opens: 3},
		{want: "front is ready and cannot be reached: forward a port of pod front-1: Forbidden"},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := ""
			if err := reach(t.Context(), &walled{opens: test.opens}, shop); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%d: %q", test.opens, got)
			}
		})
	}
}
