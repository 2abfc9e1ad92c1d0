package shell

import (
	"context"
	"maps"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/data"
	"github.com/aiopslab/aiopslab/shell/internal/files"
	"github.com/aiopslab/aiopslab/shell/internal/interp"
	"github.com/aiopslab/aiopslab/shell/internal/network"
	"github.com/aiopslab/aiopslab/shell/internal/script"
	"github.com/aiopslab/aiopslab/shell/internal/system"
	"github.com/aiopslab/aiopslab/shell/internal/text"
)

var sh = interp.Program(interp.Config{Programs: script.Inside()})

// Sh is the shell: sh [-abCefhimnuvx] [-o option] [-l] [-i] [-c command | file | -s] [argument...].
// Called as bash it speaks as bash does.
//
// Commands that are not part of the shell are started with env.Procs. If env.Terminal is set and
// commands come from standard input, the shell is interactive. As process 1 it ignores signals it
// has no trap for.
func Sh(ctx context.Context, env *kit.Env) error { return sh(ctx, env) }

// Tools returns all commands, shells included, by name.
func Tools() map[string]kit.Program {
	all := map[string]kit.Program{"sh": Sh, "ash": Sh, "bash": Sh}
	for _, set := range []map[string]kit.Program{
		script.Tools(), text.Tools(), files.Tools(), system.Tools(), network.Tools(),
	} {
		maps.Copy(all, set)
	}
	return all
}

// Workstation returns what an operator's machine has: Tools, and jq and column.
func Workstation() map[string]kit.Program {
	all := Tools()
	maps.Copy(all, data.Tools())
	return all
}

// Node returns what a node of a cluster has itself: Tools, and journalctl.
func Node() map[string]kit.Program {
	all := Tools()
	maps.Copy(all, system.NodeTools())
	return all
}
