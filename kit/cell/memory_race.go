//go:build race

package cell

// maxMemory is no limit: the race detector takes far more than the program.
const maxMemory = 0
