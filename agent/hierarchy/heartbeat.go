package hierarchy

import (
	"context"
	"fmt"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// heartbeatText is what a heartbeat asks for.
const heartbeatText = "Look whether your service is as it should be: its pods, its configuration, its log and how " +
	"its requests fare. If something is wrong, say what and why, and if you can, put it right. If all is well, say " +
	"just that."

// reserve is how many calls are kept for what the chief has to do.
const reserve = 4

// beat has the maintainers look at their services every so often, without being asked by anybody, while nobody has
// anything else to do for them and there are calls left.
func (g *group) beat(ctx context.Context) {
	for n := 2; ; n++ { // The first is the one that the work begins with.
		select {
		case <-g.after(g.heartbeat):
		case <-ctx.Done():
			return
		}
		who, text, with := g.regular()
		for _, s := range who {
			if g.floor.left() > reserve+len(who) && len(g.bus.pendingOf(s)) == 0 {
				m := heartbeat(n, s, text)
				m.Want, m.Order = with.Want, with.Order
				_ = g.bus.send(ctx, m) // The next one comes anyway.
			}
		}
	}
}

// regular is what heartbeats ask for, and whom: in an operation those who have objectives, about these. On call they
// ask nobody: the pager calls.
func (g *group) regular() (who []string, text string, with Message) {
	switch {
	case g.Task == problem.OnCall:
		return nil, "", Message{}
	case g.Task != problem.Operation || g.order == nil:
		return g.services(), heartbeatText, Message{}
	case !g.order.Standing:
		return nil, "", Message{}
	}
	each := g.order.each()
	text = each.Objectives.heartbeat()
	if g.mode == peers && g.order.Fix { // Nobody else tells them to.
		text += " What of it lies with you, put it right."
	}
	return g.order.Services, text, Message{Want: measure, Order: each}
}

// heartbeat is the message of the n-th heartbeat to a maintainer.
func heartbeat(n int, to, text string) Message {
	m := Message{ID: fmt.Sprintf("heartbeat-%d-%s", n, to)}
	m.Message = record.Message{From: heartbeatName, To: to, Kind: record.HeartbeatMessage, Text: text}
	return m
}
