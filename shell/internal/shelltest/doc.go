// Package shelltest is a container in memory for the tests of the shell and its tools: files, a
// network, and a process table with signals.
//
//	m := shelltest.New(t, shell.Tools())
//	m.Write("/tmp/in", "b\na\n")
//	r := m.Run("sort", "/tmp/in") // r.Stdout == "a\nb\n"
//
// Everything a test starts is stopped, and waited for, when the test ends.
package shelltest
