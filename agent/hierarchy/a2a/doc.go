// Package a2a talks to an agent of somebody else over the Agent2Agent protocol, as far as a conversation needs it: the
// agent's card, a message, and the task that an agent may make of one. It speaks JSON-RPC over HTTP, as of versions 0.3
// and 1.0 of the protocol, whichever the card names.
//
//	c, err := a2a.Open(ctx, "https://host/agent", "")
//	reply, err := c.Say(ctx, "How is the database?")
//
// The other side is not trusted: what it sends is bounded, it cannot send the client elsewhere, and every wait ends
// with its context.
package a2a
