package aci

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Told is a response as people read it: what the agent says, and its call, in one text each. A command for the shell
// stands behind "$ ". Of a response without a call that can be read, all is said.
func Told(response string) (said, call string) {
	c, err := Parse(response)
	if err != nil {
		return strings.TrimSpace(response), ""
	}
	var lines []string
	for _, l := range strings.Split(strings.Join(c.Context, "\n"), "\n") {
		l = strings.TrimSpace(l)
		if l = strings.TrimPrefix(l, "Thought: "); l != "" && l != "Action:" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n"), c.told()
}

func (c *Call) told() string {
	command, ok := c.Kwargs["command"]
	if !ok && len(c.Args) > 0 {
		command = c.Args[0]
	}
	if text, ok := command.(string); ok && c.Name == "exec_shell" {
		return "$ " + text
	}
	var args []string
	for _, a := range c.Args {
		args = append(args, literal(a))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Kwargs)) {
		args = append(args, name+"="+literal(c.Kwargs[name]))
	}
	return c.Name + "(" + strings.Join(args, ", ") + ")"
}

func literal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
