// Package system has the tools that look at processes, users, time and the machine: ps, kill, top,
// free, id, date and the like.
//
//	programs := system.Tools()
//	kit.Run(ctx, programs["ps"], env)
package system

import "github.com/aiopslab/aiopslab/shell/internal/tool"

// Tools returns the tools of this package by name.
func Tools() tool.Set {
	return tool.NewSet(
		ps, kill, killall, pkill, pgrep, pidof, top, free, uptime, nproc, uname, arch, hostname, id, whoami,
		groups, date, dmesg, sysctl, clear, vi, ttyTool, stty, chroot,
	)
}

// NodeTools returns the tools that only the machine below containers has.
func NodeTools() tool.Set { return tool.NewSet(journalctl) }
