//go:build !race

package tool

// MaxMemory is the memory a process can have, in bytes. It dies beyond. What Go reserves and does
// not use yet does not count.
const MaxMemory = 1536 << 20
