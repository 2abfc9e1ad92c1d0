// Package tool is the entry of the processes that work for an agent, all out of the lab's own
// binary: its shell, and kubectl and helm, which the shell asks for. Such a process limits and
// confines itself before it does anything else: to so much memory, to the agent's scratch root, and
// to the port of the API it may talk to.
//
//	cmd := tool.Command(self, tool.Place{Root: root, Port: port}, line, "kubectl", "get", "pods")
//
// and in the command "tool":
//
//	return tool.Run(args, map[string]tool.Program{"kubectl": kubectl, "helm": helm})
//
// # Confinement
//
// Where the process may change its root it has the scratch root for its own, so that no other file
// has a name: as the superuser, or in a user namespace of its own. Where that is not allowed, callers
// translate paths, and Landlock keeps the process out of the files it can still name. Landlock
// also takes away execution and connections, where the kernel has it. [Describe] says what that amounts
// to on this machine.
//
// # Crashes
//
// What Go's runtime says of a crash is for the lab. The process' descriptor 2 is where it goes, and
// the agent's standard error is another one.
package tool
