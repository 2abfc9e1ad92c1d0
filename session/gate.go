package session

import (
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard"
)

// putUpGate has the guard stand in the cluster's network, too: an agent can make identities and pods,
// and reach the API with them. It stays there until the run is over, because what an agent leaves
// behind goes on.
func (l *Local) putUpGate(g *guard.Guard) {
	l.guard = g
	if c, ok := l.stage.cloud.(cloud.Gated); ok {
		c.SetGate(&cloud.Gate{API: g.Network(), Kubelet: g.Kubelet})
	}
}

// leaveGate takes the guard away.
func (l *Local) leaveGate() {
	if l.guard == nil {
		return
	}
	if c, ok := l.stage.cloud.(cloud.Gated); ok {
		c.SetGate(nil)
	}
	_ = l.guard.Close()
	l.guard = nil
}
