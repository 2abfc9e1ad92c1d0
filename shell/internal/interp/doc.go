// Package interp runs shell scripts in a container: the POSIX language with what ash and bash add to
// it, over the files, processes and signals of a [kit.Env].
//
// The syntax and the expansion of words are those of mvdan.cc/sh. Its interpreter is not used: it
// needs pipes, named pipes, process IDs and searches of the operating system, none of which a
// simulated container may touch, and it knows neither traps for signals, nor jobs, nor descriptors
// beyond the standard ones.
//
//	sh := interp.Program(interp.Config{Programs: map[string]kit.Program{"echo": echo}})
//	code := kit.Run(ctx, sh, env) // env.Args: sh -c 'for i in 1 2; do echo $i; done'
//
// A [Shell] belongs to one goroutine. What Unix does with fork, it does by copying itself: the parts
// of a pipeline, subshells and substitutions are copies in the same process, and background jobs are
// copies in processes of their own, if the container's process table is a [kit.Forker].
package interp
