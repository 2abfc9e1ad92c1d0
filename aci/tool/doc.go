// Package tool is the entry of the programs that an agent's shell starts as processes: kubectl and
// helm, out of the lab's own binary. A tool confines itself before it does anything else, to the
// agent's scratch root and to the port of the API it may talk to.
//
//	cmd := exec.Command(self, "tool", "kubectl", "get", "pods")
//	cmd.Env = tool.Environ(root, port)
//
// and in the command "tool":
//
//	return tool.RunTool(args, map[string]func(args []string) int{"kubectl": kubectl, "helm": helm})
//
// Landlock does it, where the kernel has it. [Describe] says what that amounts to on this machine.
package tool
