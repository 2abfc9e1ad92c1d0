// Package cli is the command line: what cmd/aiopslab runs.
//
// [Main] takes the process' arguments, environment and streams in a [State]. A command that fails
// returns an error; the edge prints it as one line, with a hint below if there is one, and exits with
// its code (see the exit codes in errors.go).
package cli
