// Package files has the tools that look at files as such, and move them about: ls, cp, find, tar, df
// and the like.
//
//	programs := files.Tools()
//	kit.Run(ctx, programs["ls"], env)
package files

import "github.com/aiopslab/aiopslab/shell/internal/tool"

// Tools returns the tools of this package by name.
func Tools() tool.Set {
	return tool.NewSet(
		ls, mkdir, rmdir, rm, unlink, cp, mv, ln, touch, truncate, chmod, chown, chgrp, stat, du, df,
		find, tree, tarTool, gzipTool, gunzip, zcat, readlink, realpath, mktemp, dd, mount, syncTool, install,
	)
}
