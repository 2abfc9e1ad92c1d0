// Package faults tests every kind of fault on a cloud: that it comes about, that it stays until
// something sets it right, and that both the reference solution and its recovery do.
package faults
