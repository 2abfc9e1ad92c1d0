package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Script returns an agent that gives these responses, whatever it observes.
func Script(responses ...string) Agent {
	return Func(func(context.Context, string) (string, error) {
		if len(responses) == 0 {
			return "", errors.New("the script is at its end, and the problem is not submitted")
		}
		next := responses[0]
		responses = responses[1:]
		return next, nil
	})
}

// Call writes a call as an agent would: a block with one line.
func Call(name string, args ...any) string {
	var list []string
	for _, a := range args {
		list = append(list, literal(a))
	}
	return fence(name, list)
}

// CallNamed writes an API call with named arguments, such as those of a JSON object.
func CallNamed(name string, args map[string]any) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(args)) {
		list = append(list, k+"="+literal(args[k]))
	}
	return fence(name, list)
}

func fence(name string, args []string) string {
	return fmt.Sprintf("```\n%s(%s)\n```", name, strings.Join(args, ", "))
}

// literal writes a value in the notation that [aci.Parse] reads. JSON's is nearly that.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // A person reads it: && is to stay &&.
	if err := e.Encode(v); err != nil {
		panic(err) // The arguments are our own.
	}
	return strings.TrimSpace(b.String())
}
