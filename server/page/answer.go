package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/term"
)

// actionForm is an action with a field for each of its parameters.
type actionForm struct {
	*aci.Action
	Fields []field
}

// field is a parameter.
type field struct {
	aci.Param
	ID, Value string
	Kind      string // text, number, check, choice or area
}

// formsOf are the forms of actions, but for that which hands in.
func formsOf(actions []*aci.Action, namespace string) (list []actionForm) {
	for _, a := range actions {
		if a.Kind == aci.Submit {
			continue
		}
		f := actionForm{Action: a}
		for _, p := range a.Params {
			one := field{Param: p, ID: a.Name + "-" + p.Name, Kind: "text"}
			switch {
			case p.Name == "namespace":
				one.Value = namespace
			case p.Name == "command":
				one.Kind = "area"
			case p.Type == "int":
				one.Kind = "number"
			case p.Type == "bool":
				one.Kind = "check"
			case len(p.Enum) > 0:
				one.Kind = "choice"
			}
			if p.Default != nil {
				one.Value = fmt.Sprint(p.Default)
			}
			f.Fields = append(f.Fields, one)
		}
		list = append(list, f)
	}
	return list
}

// callOf is the call that a form makes. What was left as it is by default is left out.
func callOf(actions []*aci.Action, name string, q url.Values) (string, error) {
	at := slices.IndexFunc(actions, func(a *aci.Action) bool { return a.Name == name && a.Kind != aci.Submit })
	if at < 0 {
		return "", fail(http.StatusUnprocessableEntity, "there is no action %s", clip(name))
	}
	args := map[string]any{}
	for _, p := range actions[at].Params {
		text := q.Get("p." + p.Name)
		var v any = text
		switch p.Type {
		case "int":
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil && text != "" {
				return "", fail(http.StatusUnprocessableEntity, "%s is a whole number, not %s", p.Name, clip(text))
			}
			v = n
		case "bool":
			v = text != ""
		}
		if !p.Required && (text == "" && p.Type != "bool" || v == p.Default) {
			continue
		}
		args[p.Name] = v
	}
	return agent.CallNamed(name, args), nil
}

// answerForm is what hands in the answer to a question.
type answerForm struct {
	Question string
	Levels   []string
	Types    []string
	Services []string
	Incident bool
}

// submission is the call that hands in what a form has.
func submission(question string, q url.Values) (string, error) {
	none := q.Get("none") != ""
	switch question {
	case term.Detection:
		answer := q.Get("answer")
		if answer != "Yes" && answer != "No" {
			return "", fail(http.StatusUnprocessableEntity, "choose whether something is wrong")
		}
		return agent.Call("submit", answer), nil
	case term.Localization:
		names := strings.FieldsFunc(q.Get("answer"), func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
		if none {
			names = []string{}
		} else if len(names) == 0 {
			return "", fail(http.StatusUnprocessableEntity, "name a service, or say that nothing is wrong")
		}
		return agent.Call("submit", names), nil
	case term.Analysis:
		if none {
			return agent.Call("submit"), nil
		}
		level, kind := q.Get("system_level"), q.Get("fault_type")
		if !slices.Contains(term.SystemLevels, level) || !slices.Contains(term.FaultTypes, kind) {
			return "", fail(http.StatusUnprocessableEntity, "choose a level and a type, or say that nothing is wrong")
		}
		return agent.Call("submit", map[string]any{"system_level": level, "fault_type": kind}), nil
	case term.Operation:
		report, err := reportOf(q.Get("answer"))
		if err != nil || len(report) == 0 {
			return agent.Call("submit"), err
		}
		return agent.Call("submit", report), nil
	}
	return agent.Call("submit"), nil
}

// reportOf reads lines of "key: value". What is a number is one.
func reportOf(text string) (map[string]any, error) {
	report := map[string]any{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			key, value, ok = strings.Cut(line, "=")
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return nil, fail(http.StatusUnprocessableEntity, "%s: write a line as key: value", clip(line))
		}
		var number float64
		if json.Unmarshal([]byte(value), &number) == nil {
			report[key] = number
		} else {
			report[key] = value
		}
	}
	return report, nil
}
