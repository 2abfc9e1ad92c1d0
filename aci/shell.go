package aci

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci/internal/box"
	"github.com/aiopslab/aiopslab/aci/tool"
)

const (
	shellTimeout    = 30  // seconds, as the documentation below says
	maxShellTimeout = 600 // seconds
)

// ShellName and Shell are the program that the agent's shell is, for the command line in
// [Options.Self].
const ShellName = box.ShellName

// Preferences applies the kuberc file that a kubectl command line names. The command line that it returns needs no
// such file any more. Warnings go to stderr.
type Preferences = box.Preferences

// Shell returns the main function of the shell's process. P is how its kubectl applies preferences.
func Shell(p Preferences) tool.Program {
	return func(w *tool.World, _ []string) int { return box.Serve(w, p) }
}

type shellArgs struct {
	Command string `arg:"command" doc:"The command to execute."`
	Timeout int    `arg:"timeout" default:"30" doc:"How long it may take, in seconds; at most 600."`
}

var execShell = define(shellAction, Write,
	"Execute a command in a bash shell with kubectl, helm, jq, awk, sed, grep, curl and the usual tools. "+
		"Pipes, loops, here-documents and $(...) work. Variables, functions, files and the working directory stay "+
		"from call to call. "+
		"Services and pods of the cluster can be reached by name and address, with curl for example. "+
		"There is no terminal and no input: commands that need one are refused, with the alternative.",
	"str: what the command printed, and its exit status unless that is 0.", runShell)

// runShell runs a command, and says how it ended.
func runShell(ctx context.Context, i *Interface, a *shellArgs) Result {
	if strings.TrimSpace(a.Command) == "" {
		return failed("the command is empty")
	}
	if a.Timeout < 1 {
		return failed("timeout must be at least 1 second, not %d", a.Timeout)
	}
	limit := min(a.Timeout, maxShellTimeout)
	out := i.box.Run(ctx, a.Command, time.Duration(limit)*time.Second)
	var b strings.Builder
	b.WriteString(out.Output)
	line := func(format string, args ...any) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	if i.tamer != nil {
		if text := i.tamer.told(); text != "" {
			line("%s", text)
		}
	}
	if out.Lost > 0 {
		line("[%d bytes before the last lines were not kept.]", out.Lost)
	}
	ended := out.TooLarge || out.TimedOut || out.Ended != "" || ctx.Err() != nil
	switch {
	case ctx.Err() != nil:
		line("[The command was ended: %v.]", context.Cause(ctx))
	case out.Ended != "":
		line("[The shell was ended: %s. A new one was started: files are as they were, variables, functions and "+
			"the working directory are gone.]", out.Ended)
	case out.TooLarge:
		line("[The command was ended because it took too much memory. Work on less, with head, tail or " +
			"grep in front.]")
	case out.TimedOut && limit < a.Timeout:
		line("[The command was ended after %d seconds, the longest it may take.]", limit)
	case out.TimedOut:
		line("[The command was ended after %d seconds. exec_shell(command, timeout=SECONDS) gives it "+
			"more, up to %d.]", limit, maxShellTimeout)
	case out.Status != 0:
		line("[exit status %d]", out.Status)
	case b.Len() == 0:
		line("[no output]")
	}
	return Result{Text: b.String(), Failed: ended}
}
