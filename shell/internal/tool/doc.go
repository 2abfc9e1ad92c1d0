// Package tool is what the small Unix tools have in common: how they are declared and called, their
// options, their messages, and their input and output.
//
// A tool is a [Tool]: a name, a line of options, and a function.
//
//	var Nl = tool.Tool{
//		Name: "nl", Options: "b: w: s:", Args: "[OPTIONS] [FILE]...",
//		Run: func(ctx context.Context, c *tool.Call) error { ... },
//	}
//
// [Tool.Program] makes a kit.Program of it. Messages are worded as BusyBox words them. Output that
// cannot be written, and a context that has ended, stop a tool from the inside: whoever writes with
// [Call.Out] need not check for either.
package tool
