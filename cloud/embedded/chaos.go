package embedded

import (
	"context"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/chaos"
)

// Disturb implements cloud.Chaos: the network and the container runtimes do what is asked, and the
// API knows nothing of it. A snapshot does not hold disturbances; a reset ends them.
func (c *Cloud) Disturb(ctx context.Context, d cloud.Disturbance) (stop func(context.Context) error, err error) {
	c.mu.Lock() // Not in the middle of a reset.
	defer c.mu.Unlock()
	return c.chaos.Disturb(ctx, d)
}

// newChaos returns what gives disturbances effect on the nodes.
func (c *Cloud) newChaos() *chaos.Engine {
	return chaos.New(chaos.Config{
		Client: c.client, Network: c.network, Clock: c.opts.Clock,
		Runtimes: func() []chaos.Runtime {
			var list []chaos.Runtime
			for _, n := range c.fleet.Nodes() {
				list = append(list, n.Runtime())
			}
			return list
		},
	})
}
