// Package text has the tools that read text and write text: cat, head, grep, sed, awk, sort, diff and
// the like.
//
//	programs := text.Tools()
//	kit.Run(ctx, programs["sort"], env)
package text

import "github.com/aiopslab/aiopslab/shell/internal/tool"

// Tools returns the tools of this package by name.
func Tools() tool.Set {
	return tool.NewSet(
		cat, tac, rev, less, less.As("more"), tee, head, tail, wc, nl, fold, paste, comm, split,
		cut, tr, sortTool, uniq, shuf, grep, egrep, fgrep, sed, awk, diff, cmpTool,
		base64Tool, md5sum, sha1sum, sha256sum, sha512sum, hexdump, od, xxd, stringsTool,
	)
}
