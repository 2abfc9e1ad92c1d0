// Package stream holds what programs of a container read from and write to when it is no file: pipes
// in memory, and inputs that can be abandoned.
//
// A plain [io.Reader] cannot be interrupted. A program whose context ends while it waits for input
// would hang, so everything here implements [ContextReader], and [Reader] turns any other source
// into one.
//
//	r, w := stream.NewPipe()
//	go func() { io.WriteString(w, "hello\n"); w.Close() }()
//	n, err := r.ReadContext(ctx, buf)
package stream
