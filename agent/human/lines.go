package human

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// Lines are the actions that a person can take by typing lines: a line is a command for the shell, a call of an action,
// or a question about them.
type Lines []*aci.Action

// Help says what a line can be.
func (l Lines) Help() string {
	var text strings.Builder
	text.WriteString("Type a command for the shell, or one of these calls ('help NAME' tells more of one):\n")
	for _, a := range l {
		fmt.Fprintf(&text, "  %s\n", a.Signature())
	}
	return text.String()
}

// callForm is a line that is written as a call. No command of a shell looks like it.
var callForm = regexp.MustCompile(`^([A-Za-z_]\w*)\s*\(\s*\S.*\)\s*$|^([A-Za-z_]\w*)\s*\(\s*\)\s*$`)

// Explain answers a line that is a question, or a call that is mistyped; it costs no step. It is empty
// for a line that can be taken as a step.
func (l Lines) Explain(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	if words[0] == "help" && len(words) == 1 {
		return l.Help()
	}
	if words[0] == "help" && len(words) == 2 {
		if a := l.action(words[1]); a != nil {
			return a.Text()
		}
		return ""
	}
	if a := l.action(words[0]); a != nil && !strings.Contains(line, "(") {
		return fmt.Sprintf("%s is a call; write it as %s", a.Name, a.Signature())
	}
	m := callForm.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	name := m[1] + m[2]
	if l.action(name) != nil {
		return ""
	}
	var names []string
	for _, a := range l {
		names = append(names, a.Name)
	}
	if near := strict.Nearest(name, names); near != "" {
		return fmt.Sprintf("There is no call %s; did you mean %s?", name, l.action(near).Signature())
	}
	return fmt.Sprintf("There is no call %s; 'help' lists those there are.", name)
}

func (l Lines) action(name string) *aci.Action {
	for _, a := range l {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Response makes a call of a line: an action if it is written as one, else a command.
func (l Lines) Response(line string) string {
	name, _, isCall := strings.Cut(line, "(")
	if isCall && l.action(strings.TrimSpace(name)) != nil {
		return "```\n" + line + "\n```"
	}
	return agent.Call("exec_shell", line)
}

// Complete completes the first word of a line that names an action.
func (l Lines) Complete(line string) string {
	var found []string
	for _, a := range l {
		if line != "" && strings.HasPrefix(a.Name+"(", line) {
			found = append(found, a.Name+"(")
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return commonPrefix(found, line)
}

// commonPrefix is the longest text that all candidates begin with, or line if there is none.
func commonPrefix(candidates []string, line string) string {
	if len(candidates) == 0 {
		return line
	}
	prefix := candidates[0]
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix
}
