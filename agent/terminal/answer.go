package terminal

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/internal/term"
)

// usages say how each task's answer is submitted.
var usages = map[string]string{
	term.Detection: `  submit Yes        if there is an anomaly
  submit No         if there is none`,
	term.Localization: `  submit NAME...    the faulty services, the most likely first
  submit --no-fault if there is none`,
	term.Analysis: `  submit --system-level LEVEL --fault-type TYPE
  submit '{"system_level": "LEVEL", "fault_type": "TYPE"}'
  submit --no-fault if there is none
LEVEL is one of ` + strings.Join(term.SystemLevels, ", ") + `.
TYPE is one of ` + strings.Join(term.FaultTypes, ", ") + `.`,
	term.Mitigation: `  submit            once the system is well`,
	term.OnCall: `  submit            when you are done with the pages so far: it waits for the next one
  submit NAME...    the same, with the services that were at fault`,
	term.Operation: `  submit            once the task is done
  submit '{"key": value, ...}'
                    where the task asks for a report`,
}

// usage says how the answer to a task is submitted. An incident begins with its first question.
func usage(task string) string { return usages[first(task)] }

// first is the first question of a task.
func first(task string) string {
	if task == term.Incident {
		return term.Detection
	}
	return task
}

// answer reads the arguments of submit, and returns the call that they stand for.
func answer(task string, args []string) (response string, err error) {
	switch task {
	case term.Detection:
		if len(args) == 1 {
			for _, word := range []string{"Yes", "No"} {
				if strings.EqualFold(args[0], word) {
					return agent.Call("submit", word), nil
				}
			}
		}
		return "", fmt.Errorf("the answer is Yes or No, not %q", strings.Join(args, " "))
	case term.Localization:
		names, err := names(args)
		return agent.Call("submit", names), err
	case term.Analysis:
		return cause(args)
	case term.OnCall:
		if len(args) == 0 {
			return agent.Call("submit"), nil
		}
		names, err := names(args)
		return agent.Call("submit", names), err
	case term.Operation:
		return report(args)
	}
	if len(args) > 0 {
		return "", fmt.Errorf("submit takes no argument here, not %q: the system itself is judged",
			strings.Join(args, " "))
	}
	return agent.Call("submit"), nil
}

// noFault is what stands for an answer when there is no fault.
const noFault = "--no-fault"

// names reads the names of services: one or more words, or a JSON list.
func names(args []string) ([]string, error) {
	list := []string{}
	switch {
	case len(args) == 1 && args[0] == noFault:
		return list, nil
	case len(args) == 1 && strings.HasPrefix(strings.TrimSpace(args[0]), "["):
		if err := json.Unmarshal([]byte(args[0]), &list); err != nil || list == nil {
			return nil, fmt.Errorf("%s is not a JSON list of names", args[0])
		}
		return list, nil
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			return nil, fmt.Errorf("there is no flag %s", a)
		}
		list = append(list, strings.FieldsFunc(a, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("name the faulty services, or write %s", noFault)
	}
	return list, nil
}

// cause reads a root cause: flags, or a JSON object.
func cause(args []string) (string, error) {
	fields := map[string]string{}
	switch {
	case len(args) == 1 && args[0] == noFault:
		return agent.Call("submit"), nil
	case len(args) == 1 && strings.HasPrefix(strings.TrimSpace(args[0]), "{"):
		if err := json.Unmarshal([]byte(args[0]), &fields); err != nil {
			return "", fmt.Errorf("%s is not a JSON object of texts", args[0])
		}
	default:
		f := flag.NewFlagSet("submit", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		level, kind := f.String("system-level", "", ""), f.String("fault-type", "", "")
		if err := f.Parse(args); err != nil {
			return "", err
		}
		if f.NArg() > 0 {
			return "", fmt.Errorf("there is no place for %q: put a text of several words in quotes", f.Arg(0))
		}
		if *level == "" && *kind == "" {
			return "", fmt.Errorf("the answer needs --system-level and --fault-type, or %s", noFault)
		}
		fields["system_level"], fields["fault_type"] = *level, *kind
	}
	known := map[string][]string{"system_level": term.SystemLevels, "fault_type": term.FaultTypes}
	var errs []error
	for _, key := range []string{"system_level", "fault_type"} {
		value, err := choose(key, fields[key], known[key])
		fields[key] = value
		errs = append(errs, err)
	}
	for key := range fields {
		if known[key] == nil {
			errs = append(errs, fmt.Errorf("there is no key %q, only system_level and fault_type", key))
		}
	}
	return agent.Call("submit", fields), errors.Join(errs...)
}

// choose finds a value among those there are, whatever its case.
func choose(key, value string, values []string) (string, error) {
	for _, v := range values {
		if strings.EqualFold(v, strings.TrimSpace(value)) {
			return v, nil
		}
	}
	if value == "" {
		return "", fmt.Errorf("%s is missing", key)
	}
	if near := strict.Nearest(value, values); near != "" {
		return "", fmt.Errorf("there is no %s %q; did you mean %q?", key, value, near)
	}
	return "", fmt.Errorf("there is no %s %q; it is one of %s", key, value, strings.Join(values, ", "))
}

// report reads what an operation asks to be reported, which may be nothing.
func report(args []string) (response string, err error) {
	if len(args) == 0 {
		return agent.Call("submit"), nil
	}
	told := map[string]any{}
	if err := json.Unmarshal([]byte(strings.Join(args, " ")), &told); err != nil {
		return "", fmt.Errorf("the report is a JSON object with the keys that the task names: %w", err)
	}
	return agent.Call("submit", told), nil
}
