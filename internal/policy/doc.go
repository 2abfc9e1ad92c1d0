// Package policy holds the rules of the code base that the compiler does not check, as tests: which
// room may import which, what links the control plane, that every package says what it is, that
// dependencies are pinned and permissively licensed, and that files speak of the product alone.
//
// A new top-level package adds a line to rooms in rooms_test.go.
package policy
