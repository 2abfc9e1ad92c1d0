// Package cell runs a program in a process of its own, out of the binary that it is linked into. It is
// for interpreters that do not count what they hold and cannot always be interrupted: awk, JavaScript,
// Lua. The kernel bounds such a process, and nothing it does can end another one.
//
//	func init() { cell.Register("awk", awk) } // at the end of the package's initialization
//
//	return cell.Run(ctx, env, "awk") // in place of awk(ctx, env), where cell.Needed(env)
//
// The program finds the world it would have found at home: its streams, files, connections and
// commands are those of env, which it uses over a line. It has no other files and no network.
//
// What the process takes of memory counts in the container's ledger and what it takes of the
// processor as the container's processor time. A process that takes too much is killed, and the
// container with it, as a kernel does.
//
// A cell starts in the init function that registers it, before most of the binary is initialized: that
// takes a tenth of the time that main would. An init function that registers must therefore be the only
// place where the program is wired, and the program must not need packages that import its own.
package cell
