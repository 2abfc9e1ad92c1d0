//go:build race

package tool

// MaxMemory sets no limit: the race detector takes far more memory than the program.
const MaxMemory = 0
