// Package data has the tools that an operator's machine has beyond those of BusyBox: jq and column.
//
//	programs := data.Tools()
//	kit.Run(ctx, programs["jq"], env)
package data

import "github.com/aiopslab/aiopslab/shell/internal/tool"

// Tools returns the tools of this package by name.
func Tools() tool.Set { return tool.NewSet(jq, column) }
