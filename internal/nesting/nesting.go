// Package nesting keeps texts that nest too deep away from parsers that call themselves for each
// level. Such a parser, or what walks the tree that it builds, uses up the stack, and a Go program
// whose stack is used up ends at once: nothing can recover from it. So whoever gives a text of
// somebody else to a parser asks here first:
//
//	if err := nesting.Check(query, nesting.Query); err != nil {
//		return err
//	}
//
// A parser that reads its text bit by bit is given a [NewReader] instead, which needs to know nothing
// of the language, and code that calls itself at run time asks [Deep].
package nesting

import (
	"errors"
	"fmt"
	"runtime"
)

// Limits are what a parser can take: far more than people write, far less than the stack holds.
type Limits struct {
	Depth int // of brackets, and of operators in front of each other
	Size  int // bytes; chains such as 1+1+1 become as deep as they are long
}

// The limits for texts of two kinds.
var (
	Query  = Limits{Depth: 500, Size: 128 << 10} // an expression in an argument; Linux has the same limit
	Script = Limits{Depth: 500, Size: 512 << 10} // a program in a file
)

// Errors of Check. They are wrapped with the limit.
var (
	ErrDepth = errors.New("nested too deep")
	ErrSize  = errors.New("too long")
)

// Check returns an error if a text is longer than the limits, or could nest deeper. It does not know quotes, and
// counts the brackets inside them too: no quote may hide brackets from it that the parser sees.
func Check(text string, l Limits) error {
	if len(text) > l.Size {
		return fmt.Errorf("%w: more than %d bytes", ErrSize, l.Size)
	}
	if Depth(text) > l.Depth {
		return fmt.Errorf("%w: more than %d levels", ErrDepth, l.Depth)
	}
	return nil
}

// Depth returns how deep brackets nest in a text, or how many prefix operators stand in a row where
// those are more. A closing bracket too many counts for nothing.
func Depth(text string) int {
	deepest, depth, run := 0, 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth+run)
			continue // "-(-(" is one run as well as two brackets.
		case ')', ']', '}':
			depth = max(depth-1, 0)
		case '-', '+', '!', '~', '$', '*', '&':
			run++
			deepest = max(deepest, depth+run)
			continue
		case ' ', '\t', '\n', '\r':
			continue
		}
		run = 0
	}
	return deepest
}

// Deep reports whether the stack of its caller has more than the given number of frames. It costs
// some nanoseconds for each frame there is.
func Deep(frames int) bool {
	var pc [1]uintptr
	return runtime.Callers(frames+2, pc[:]) > 0
}
