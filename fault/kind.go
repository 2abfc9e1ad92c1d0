package fault

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// Define completes a kind whose parameters are a P, with the defaults given. A parameter type that
// has a method Validate is asked whether what a document says makes sense.
func Define[P any](k Kind, defaults P, bind func(t Target, p P) (Fault, error),
	solution func(t Target, p P) []string,
) *Kind {
	k.Params = func() any { p := defaults; return &p }
	k.Bind = func(t Target, params any) (Fault, error) { return bind(t, *params.(*P)) }
	if solution != nil {
		k.Solution = func(t Target, params any) []string { return solution(t, *params.(*P)) }
	}
	return &k
}

// none are the parameters of a kind that has none.
type none struct{}

// New makes a fault from what a document says. Params may be nil, which leaves the defaults. The
// error names what is wrong and, for a misspelt name, what was probably meant.
func (k *Kind) New(t Target, params *yaml.Node) (Fault, error) {
	p, err := k.decode(t, params)
	if err != nil {
		return nil, err
	}
	return k.Bind(t, p)
}

// Fix returns the reference solution for what a document says. It is empty if no operator can fix the fault.
func (k *Kind) Fix(t Target, params *yaml.Node) ([]string, error) {
	p, err := k.decode(t, params)
	if err != nil || k.Solution == nil {
		return nil, err
	}
	return k.Solution(t, p), nil
}

// decode checks the target and fills the parameters in.
func (k *Kind) decode(t Target, params *yaml.Node) (any, error) {
	if err := k.checkTarget(t); err != nil {
		return nil, err
	}
	p := k.Params()
	if err := k.fill(p, params); err != nil {
		return nil, err
	}
	if v, ok := p.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			all := &strict.Problems{File: k.Name}
			all.Add(lineOf(params, err.Error()), "parameter %v", err)
			return nil, all
		}
	}
	return p, nil
}

// quoted is a name in quotes.
var quoted = regexp.MustCompile(`"([a-z_]+)"`)

// lineOf is the line of the first parameter that an error names and a document gives; 0 for none.
func lineOf(params *yaml.Node, text string) int {
	if params == nil {
		return 0
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		for i := 0; i+1 < len(params.Content); i += 2 {
			if params.Content[i].Value == m[1] {
				return params.Content[i].Line
			}
		}
	}
	return params.Line
}

func (k *Kind) checkTarget(t Target) error {
	if t.App == nil {
		return fmt.Errorf("%s: no application is given", k.Name)
	}
	targets := k.Targets(t.App)
	if slices.Contains(targets, t.Service) {
		return nil
	}
	targets = slices.DeleteFunc(slices.Clone(targets), func(s string) bool { return s == "" })
	switch near := strict.Nearest(t.Service, targets); {
	case len(targets) == 0:
		return fmt.Errorf("%s cannot go to any service of %s", k.Name, t.App.Name)
	case t.Service == "":
		return fmt.Errorf("%s needs a target of %s: one of %s", k.Name, t.App.Name, strings.Join(targets, ", "))
	case near != "":
		return fmt.Errorf("%s cannot go to %q of %s; did you mean %q?", k.Name, t.Service, t.App.Name, near)
	}
	return fmt.Errorf("%s cannot go to %q of %s; it can go to %s", k.Name, t.Service, t.App.Name,
		strings.Join(targets, ", "))
}

// fill decodes the parameters one by one, so that an error can name the one that is wrong.
func (k *Kind) fill(into any, params *yaml.Node) error {
	if params != nil && params.Kind == yaml.DocumentNode && len(params.Content) == 1 {
		params = params.Content[0]
	}
	if params == nil || params.IsZero() || params.Tag == "!!null" {
		return nil
	}
	all := &strict.Problems{File: k.Name}
	if params.Kind != yaml.MappingNode {
		all.List = append(all.List, strict.Problem{
			Line: params.Line,
			Text: "parameters are written as {name: value, ...}",
		})
		return all
	}
	for i := 0; i+1 < len(params.Content); i += 2 {
		one := *params
		one.Content = params.Content[i : i+2]
		err := strict.Node(&one, into)
		if err == nil {
			continue
		}
		list, ok := err.(*strict.Problems)
		if !ok {
			return fmt.Errorf("%s: parameter %q: %w", k.Name, params.Content[i].Value, err)
		}
		for _, p := range list.List {
			if name := fmt.Sprintf("%q: ", params.Content[i].Value); strings.HasPrefix(p.Text, name) {
				p.Text = "parameter " + p.Text
			} else if !strings.HasPrefix(p.Text, "unknown field") {
				p.Text = "parameter " + name + p.Text
			}
			all.List = append(all.List, p)
		}
	}
	if len(all.List) > 0 {
		return all
	}
	return nil
}

// Parameter describes one parameter of a kind.
type Parameter struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // "string", "integer", "number", "boolean", "duration" or "list"
	Default string `json:"default,omitempty"`
	Doc     string `json:"doc"`
}

// Parameters describes the parameters of a kind.
func (k *Kind) Parameters() []Parameter { return parameters(reflect.ValueOf(k.Params()).Elem()) }

func parameters(v reflect.Value) []Parameter {
	var list []Parameter
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if strings.Contains(options, "inline") {
			list = append(list, parameters(v.Field(i))...)
			continue
		}
		p := Parameter{Name: name, Type: typeName(f.Type), Doc: f.Tag.Get("doc")}
		if x := v.Field(i); x.Kind() == reflect.Slice {
			p.Default = strings.Join(x.Interface().([]string), ", ")
		} else if !x.IsZero() {
			p.Default = fmt.Sprint(x.Interface())
		}
		list = append(list, p)
	}
	return list
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.String:
		return "string"
	}
	return "integer"
}

// services returns the names of an application's services that fit. Those are left out that the application scales by
// itself: most faults are seen by a service's pods, and of these there may be none.
func services(a *app.App, fits func(app.Service) bool) (names []string) {
	for _, s := range a.Services {
		if !s.Elastic && fits(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// AnyService returns the targets of a fault that can hit any service.
func AnyService(a *app.App) []string { return services(a, func(app.Service) bool { return true }) }

// deployed are the services that the application deploys itself, as many pods of each as it says. What an operator
// makes, it would make anew, and a DaemonSet has as many as there are nodes for it.
func deployed(a *app.App) []string {
	o, err := read(a)
	if err != nil {
		return nil
	}
	return services(a, func(s app.Service) bool {
		kind := o.controller(s.Name).kind
		return kind == "Deployment" || kind == "StatefulSet"
	})
}

// callers are the services that call another.
func callers(a *app.App, service string) []string {
	return services(a, func(s app.Service) bool { return slices.Contains(s.Calls, service) })
}
