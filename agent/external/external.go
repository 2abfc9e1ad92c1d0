// Package external is the agent that is a program of its own, in any language. The lab starts it and
// speaks with it in lines of JSON, over the program's standard input and output:
//
//	lab    {"type":"hello","protocol":1,"task":"detection","namespace":"test-hotel-reservation",...}
//	lab    {"type":"observation","step":1,"text":"Please take the next action"}
//	agent  {"type":"call","name":"exec_shell","arguments":{"command":"kubectl get pods"}}
//	lab    {"type":"observation","step":2,"text":"NAME  READY ..."}
//	agent  {"type":"action","text":"submit(\"Yes\")"}
//	lab    {"type":"end","reason":"submitted"}
//
// docs/ways-in.md tells all of it. Whatever the program does wrong is a failure of the agent: it is
// never waited for longer than the run lasts, never read without a bound, and never left running.
package external

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
)

// Prefix is what stands before the command in the name of such an agent.
const Prefix = "exec:"

// Entry makes the agent from a command line, which is split into words as a shell does it. That the
// program is there is checked at once. It runs in a cage.
func Entry(command string, c *cage.Cage) (agent.Entry, error) {
	argv, err := split(command)
	if err != nil {
		return agent.Entry{}, err
	}
	if argv[0], err = exec.LookPath(argv[0]); err != nil {
		return agent.Entry{}, err
	}
	return agent.Entry{
		Name: Prefix + command, Doc: "the program " + argv[0], Held: c.Holds(), Gap: c.Gap(),
		New: func(b agent.Briefing) (agent.Agent, error) { return start(b, argv, c, patience) },
	}, nil
}

// split takes a command line apart: blanks separate, quotes and backslashes protect. What a shell
// would replace by something else is refused, since it was most likely to be passed on.
func split(command string) ([]string, error) {
	var words []*syntax.Word
	for w, err := range syntax.NewParser().WordsSeq(strings.NewReader(command)) {
		if err != nil {
			return nil, fmt.Errorf("the command cannot be split into words: %w", err)
		}
		words = append(words, w)
	}
	for _, w := range words {
		if bad := replaced(w); bad != "" {
			return nil, fmt.Errorf("the command has %s in it, which is not expanded: put it in single quotes, or "+
				"run sh -c '...'", bad)
		}
	}
	argv, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(os.Getenv)}, words...)
	if err == nil && len(argv) == 0 {
		err = errors.New("there is no command")
	}
	return argv, err
}

// replaced returns a part of a word that a shell would replace, or nothing.
func replaced(w *syntax.Word) (text string) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			var b strings.Builder
			_ = syntax.NewPrinter().Print(&b, n)
			text = b.String()
		}
		return text == ""
	})
	return text
}
