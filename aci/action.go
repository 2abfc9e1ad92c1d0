package aci

import (
	"context"
	"fmt"
	"reflect"
	"strings"
)

// Kind is what an action does to the cloud.
type Kind string

// The kinds.
const (
	Read   Kind = "read"   // it only looks
	Write  Kind = "write"  // it may change something
	Submit Kind = "submit" // it hands the answer in, which ends the run
)

// Action is something an agent can do. It is made from a Go function and the struct of its arguments, which give
// it its signature, documentation and schema.
type Action struct {
	Name    string
	Kind    Kind
	Doc     string // what it does, in sentences
	Params  []Param
	Returns string

	loose bool // arguments beyond the parameters are dropped, and the agent is told
	args  reflect.Type
	do    func(ctx context.Context, i *Interface, args reflect.Value) Result
}

// Param is a parameter of an action.
type Param struct {
	Name     string
	Type     string // as Python writes it: "str", "int", "bool", "list[str]", "dict[str, str]"
	Doc      string
	Required bool
	Default  any // of one that is not required: string, int, bool or nil
	Enum     []string

	field int
}

// define makes an action. The fields of T are its parameters, in their order. Tags say the rest:
//
//	Name string `arg:"name" default:"x" enum:"x,y" type:"list[str]" doc:"What it is."`
//
// A parameter with a default is optional; the default of one that is a number or a bool is written
// as such.
func define[T any](name string, kind Kind, doc, returns string,
	do func(ctx context.Context, i *Interface, args *T) Result,
) *Action {
	t := reflect.TypeFor[T]()
	a := &Action{
		Name: name, Kind: kind, Doc: doc, Returns: returns, args: t,
		do: func(ctx context.Context, i *Interface, args reflect.Value) Result {
			return do(ctx, i, args.Interface().(*T))
		},
	}
	for n := range t.NumField() {
		f := t.Field(n)
		p := Param{Name: f.Tag.Get("arg"), Doc: f.Tag.Get("doc"), Type: f.Tag.Get("type"), field: n}
		if p.Type == "" {
			p.Type = map[reflect.Kind]string{
				reflect.String: "str", reflect.Int: "int",
				reflect.Bool: "bool",
			}[f.Type.Kind()]
		}
		if p.Name == "" || p.Type == "" {
			panic(fmt.Sprintf("aci: field %s of the arguments of %s needs a name and a type", f.Name, name))
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			p.Enum = strings.Split(enum, ",")
		}
		text, optional := f.Tag.Lookup("default")
		if p.Required = !optional; optional {
			v, err := p.defaultValue(f.Type, text)
			if err != nil {
				panic(fmt.Sprintf("aci: default of %s of %s: %v", p.Name, name, err))
			}
			p.Default = v
		}
		a.Params = append(a.Params, p)
	}
	return a
}

// defaultValue reads a default.
func (p *Param) defaultValue(t reflect.Type, text string) (any, error) {
	if t.Kind() == reflect.Interface {
		return nil, nil
	}
	v := reflect.New(t).Elem()
	if err := p.set(v, text); err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// param returns a parameter by name, or nil.
func (a *Action) param(name string) *Param {
	for i := range a.Params {
		if a.Params[i].Name == name {
			return &a.Params[i]
		}
	}
	return nil
}

// names are the names of the parameters.
func (a *Action) names() []string {
	var list []string
	for _, p := range a.Params {
		list = append(list, p.Name)
	}
	return list
}
