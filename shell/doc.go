// Package shell is a Unix shell and the small tools that go with it, as programs of a simulated
// container: what kubectl exec runs, what the busybox image holds, and what scripts in manifests are
// written in.
//
// [Sh] is the shell; [Tools] are all commands by name, to be put into an image:
//
//	programs := map[string]kit.Program{}
//	for name, p := range shell.Tools() {
//		programs["/bin/"+name] = p
//	}
//	image := kit.Image{Names: []string{"busybox"}, Programs: programs, Cmd: []string{"sh"}}
//
// Nothing here touches the host: files, network, processes, signals and time spent on the processor
// are those of the program's [kit.Env]. The tools take the options that people use, in the spelling
// of BusyBox and of GNU, and print BusyBox's messages; curl, dig and host print their own.
//
// A shell needs two things of whoever runs it beyond a program's usual world: Env.PID for $$ and for
// the way process 1 treats signals, and, for its background jobs to have processes of their own, a
// process table that is a [kit.Forker].
package shell
