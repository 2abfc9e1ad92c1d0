package interp

import (
	"errors"
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

const (
	// maxTree is how many nodes of a command may lie inside each other. The parser keeps to it where it
	// calls itself; a && b && c is as deep as it is long without that.
	maxTree = 3000
	// maxBraces is how deep {a,{b,c}} may nest, which the parser knows nothing of.
	maxBraces = 200
	// maxFrames is how far the stack of a shell may grow: functions, files and substitutions within
	// each other. It is looked at every so many commands.
	maxFrames  = 20_000
	maxEvals   = 200 // texts that run each other: eval, files, aliases
	depthStep  = 64
	tooDeep    = "maximum nesting level exceeded"
	tooDeepErr = 2
)

var errTooDeep = errors.New(tooDeep)

// newParser returns a parser for what the shell reads.
func newParser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// guarded returns a text for a parser, which fails before its nesting uses up the stack.
func guarded(r io.Reader) io.Reader { return nesting.NewReader(r) }

// survey looks through a command before anything else does. It reports whether the parser has not yet
// read one of its here-documents, and fails if the command nests too deep to be walked.
func survey(n syntax.Node) (awaits bool, err error) {
	depth := 0
	syntax.Walk(n, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if err != nil || depth >= maxTree {
			err = errTooDeep
			return false
		}
		switch n := n.(type) {
		case *syntax.Redirect:
			awaits = awaits || (n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc) && n.Hdoc == nil
		case *syntax.Lit:
			if strings.Count(n.Value, "{") > maxBraces && nesting.Depth(n.Value) > maxBraces {
				err = errTooDeep
				return false
			}
		}
		depth++
		return true
	})
	return awaits, err
}

// deeper enters a command. It reports false, having said so, if there are too many within each other;
// shallower leaves it.
func (s *Shell) deeper() bool {
	if s.refused {
		s.depth++
		s.cannotFork()
		return false
	}
	if s.depth++; s.depth%depthStep == 0 && nesting.Deep(maxFrames) {
		s.fail(tooDeepErr, tooDeep)
		return false
	}
	return true
}

func (s *Shell) shallower() { s.depth-- }
