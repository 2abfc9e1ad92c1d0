// Package tty is the kernel's side of a terminal: echo, line editing, Ctrl-C, Ctrl-D, and newlines
// that return the carriage.
//
// A client such as kubectl exec -it puts its own terminal into raw mode and sends every key as it is
// pressed, so that all this happens at the other end. A program that finds a [kit.Terminal] in its
// Env calls [Attach] first, and then reads and writes as ever:
//
//	ctx, env, detach := tty.Attach(ctx, env)
//	defer detach()
//
// Programs it starts with those streams share the terminal; their own Attach changes nothing. A
// shell reads its commands with [Terminal.ReadLine].
package tty
