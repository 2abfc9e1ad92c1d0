// Package script has the tools that scripts are glued together with: echo, printf, test, expr, seq,
// sleep, env, xargs, timeout and the like.
//
//	sh := interp.Program(interp.Config{Programs: script.Inside()})
package script

import (
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// Tools returns the tools of this package by name.
func Tools() tool.Set {
	return tool.NewSet(
		echo, printf, test, test.As("["), expr, seq, sleep, usleep, env, printenv, basename, dirname,
		pwd, yes, timeout, nohup, nice, xargs, which, watch, trueTool, falseTool,
	)
}

// Inside returns the tools that a shell runs itself.
func Inside() map[string]kit.Program {
	all := Tools()
	return map[string]kit.Program{"echo": all["echo"], "printf": all["printf"], "test": all["test"], "[": all["["]}
}
