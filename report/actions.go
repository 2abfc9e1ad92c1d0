package report

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// Unreadable is the action of a response in which none could be read.
	Unreadable = "(unreadable)"
	shell      = "exec_shell"
)

// step takes a step's action, and the programs it ran.
func (r *Run) step(s record.Step) {
	if s.Action == "" {
		s.Action = Unreadable
	}
	r.Actions = append(r.Actions, s.Action)
	if s.Action != shell {
		return
	}
	call, err := aci.Parse(s.Response)
	if err != nil {
		return
	}
	for _, v := range append(slices.Clone(call.Args), call.Kwargs["command"]) {
		if command, ok := v.(string); ok {
			r.Commands = append(r.Commands, programs(command)...)
			return
		}
	}
}

// programs are the names of what a command line runs, those of kubectl and helm with their verb.
func programs(command string) []string {
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil { // The shell complained, too. What was meant is its first word.
		return name(strings.Fields(command))
	}
	var list, functions []string
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			functions = append(functions, n.Name.Value)
		case *syntax.CallExpr:
			words := make([]string, len(n.Args))
			for i, w := range n.Args {
				words[i] = w.Lit() // Empty if the shell makes something of it.
			}
			list = append(list, name(words)...)
		}
		return true
	})
	return slices.DeleteFunc(list, func(n string) bool { return slices.Contains(functions, n) })
}

// name is what the words of a command are counted as: nothing if it is not known what they run.
func name(words []string) []string {
	if len(words) == 0 || words[0] == "" {
		return nil
	}
	n := words[0][strings.LastIndexByte(words[0], '/')+1:]
	if n == "kubectl" || n == "helm" {
		for _, w := range words[1:] {
			if slices.Contains(verbs, w) {
				return []string{n + " " + w}
			}
		}
	}
	return []string{n}
}

// verbs are those of kubectl and helm. They are looked for among the words, because flags and their
// values may come first.
var verbs = []string{
	"annotate", "api-resources", "apply", "attach", "auth", "autoscale", "cluster-info", "config", "cordon", "cp",
	"create", "debug", "delete", "describe", "diff", "drain", "edit", "events", "exec", "explain", "expose", "get",
	"history", "install", "label", "list", "logs", "patch", "port-forward", "replace", "rollback", "rollout", "run",
	"scale", "set", "status", "taint", "template", "top", "uncordon", "uninstall", "upgrade", "version", "wait",
}
