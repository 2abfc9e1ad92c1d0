// Package box is the agent's machine: an interpreted bash with the usual tools, in a scratch
// directory of the host that is its whole file system, and in the cluster's network.
//
//	b, err := box.New(box.Options{Dir: dir, Dial: cloud.Dial, ...})
//	out := b.Run(ctx, "kubectl get pods | awk '{print $1}'", 30*time.Second)
//
// # What it cannot reach
//
// Files go through an [os.Root], so that neither "..", nor an absolute path, nor a symbolic link
// leads out of the scratch directory. The tools are functions in this process and know no other
// files; variables of the host are not passed on; connections go through Options.Dial.
//
// kubectl and helm are the only processes. They are not in a root of their own, which would take
// privileges: they run confined (see package tool) in the directory of the host that stands for the
// shell's working directory, and the paths among their arguments are rewritten to paths of the
// host. In what they print the scratch directory is taken out again, so that an agent sees its own
// paths only. See paths.go for which arguments are paths.
//
// # What it will not do
//
// Commands are judged when they are about to run, after expansion, so that neither quoting nor xargs
// nor a script hides them. What needs a terminal or never ends is refused with the alternative, or
// bounded, and says so. See policy.go.
package box
