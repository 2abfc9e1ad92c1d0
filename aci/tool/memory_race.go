//go:build race

package tool

// MaxMemory is no limit: the race detector takes far more than the program.
const MaxMemory = 0
