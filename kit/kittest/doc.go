// Package kittest runs programs in a world in memory, for tests: machines with files and addresses
// on one network, signals, exit codes, and output that can be waited for.
//
//	w := kittest.New(t)
//	server := w.Machine("server", "10.244.0.2")
//	run := server.Start(agnhost.Main, "/agnhost", "netexec")
//	server.WaitListen(":8080")
//	run.Signal(syscall.SIGTERM)
//	if code := run.Wait(); code != 0 { ... }
//
// Everything a test starts is stopped, and waited for, when the test ends. It works inside a
// testing/synctest bubble too.
package kittest
