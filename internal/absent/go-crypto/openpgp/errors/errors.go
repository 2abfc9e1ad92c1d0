// Package errors stands for OpenPGP's errors, which Helm's tests name.
package errors
