//go:build !race

package cell

// maxMemory is the memory a cell can have, in bytes. It dies beyond. What Go reserves and does not use
// yet does not count.
const maxMemory = 768 << 20
