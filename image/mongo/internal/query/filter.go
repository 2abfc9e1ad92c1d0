// Package query is what find does: filters, projections and sort orders, and the bounds an index
// can be searched with.
package query

import (
	"strings"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Filter is a parsed query. It is safe for concurrent use.
type Filter struct{ all and }

// Match is what a filter found out about a document that matches it.
type Match struct {
	// Index is the index of the array element that matched, or -1. The positional operator $ stands for it.
	Index int

	vars map[string]value.Value
}

// node is a condition on a document.
type node interface {
	match(d value.Doc, m *Match) bool
}

type (
	and []node
	or  []node
	not struct{ node }
	// field is a condition on what a path leads to.
	field struct {
		path string
		test test
	}
	expression struct{ expr expr.Expr }
	constant   bool
)

// Parse reads a filter.
func Parse(d value.Doc) (*Filter, error) {
	list, err := parse(d)
	return &Filter{list}, err
}

// Match reports whether a document matches.
func (f *Filter) Match(d value.Doc) bool { return f.all.match(d, &Match{}) }

// MatchVars is Match with variables for $expr.
func (f *Filter) MatchVars(d value.Doc, vars map[string]value.Value) bool {
	return f.all.match(d, &Match{vars: vars})
}

// Find is like Match, and also tells which element of an array matched.
func (f *Filter) Find(d value.Doc) (Match, bool) {
	m := Match{Index: -1}
	ok := f.all.match(d, &m)
	return m, ok
}

func (n and) match(d value.Doc, m *Match) bool {
	for _, c := range n {
		if !c.match(d, m) {
			return false
		}
	}
	return true
}

func (n or) match(d value.Doc, m *Match) bool {
	for _, c := range n {
		if c.match(d, m) {
			return true
		}
	}
	return false
}

func (n not) match(d value.Doc, m *Match) bool { return !n.node.match(d, &Match{vars: m.vars}) }

func (n constant) match(value.Doc, *Match) bool { return bool(n) }

func (n expression) match(d value.Doc, m *Match) bool {
	v, err := expr.Eval(n.expr, d, m.vars)
	return err == nil && value.Truthy(v)
}

func (n field) match(d value.Doc, m *Match) bool {
	found := -1
	ok := n.test.walk(d, n.path, func(l value.Leaf) bool {
		i, ok := n.test.holds(l.Value)
		if !ok {
			return false
		}
		if found = l.Index; found < 0 {
			found = i
		}
		return true
	})
	if ok && found >= 0 {
		m.Index = found
	}
	return ok
}

func parse(d value.Doc) (and, error) {
	var list and
	for name, v := range value.Fields(d) {
		n, err := parseField(name, v)
		if err != nil {
			return nil, err
		}
		list = append(list, n...)
	}
	return list, nil
}

func parseField(name string, v value.Value) (and, error) {
	if !strings.HasPrefix(name, "$") {
		return parseCondition(name, v)
	}
	switch name {
	case "$and", "$or", "$nor":
		return parseClauses(name, v)
	case "$expr":
		e, err := expr.Parse(v)
		return and{expression{e}}, err
	case "$comment":
		return nil, nil
	case "$alwaysTrue", "$alwaysFalse":
		return and{constant(name == "$alwaysTrue")}, nil
	}
	return nil, code.Errorf(code.BadValue, "unknown top level operator: %s", name)
}

func parseClauses(name string, v value.Value) (and, error) {
	if !value.IsArray(v) {
		return nil, code.Errorf(code.BadValue, "%s must be an array", name)
	}
	var clauses []node
	for _, item := range value.Items(v.Data) {
		if !value.IsDoc(item) {
			return nil, code.Errorf(code.BadValue, "$or/$and/$nor entries need to be full objects")
		}
		c, err := parse(item.Data)
		if err != nil {
			return nil, err
		}
		clauses = append(clauses, c)
	}
	if len(clauses) == 0 {
		return nil, code.Errorf(code.BadValue, "$and/$or/$nor must be a nonempty array")
	}
	switch name {
	case "$and":
		return clauses, nil
	case "$or":
		return and{or(clauses)}, nil
	}
	return and{not{or(clauses)}}, nil
}

// isOperators reports whether a value is a document of operators, and not one to be compared with.
func isOperators(v value.Value) bool {
	if !value.IsDoc(v) {
		return false
	}
	name, _ := value.First(v.Data)
	return strings.HasPrefix(name, "$") && name != "$ref" && name != "$id" && name != "$db"
}

// parseCondition reads what is demanded of one path.
func parseCondition(path string, v value.Value) (and, error) {
	if !isOperators(v) {
		t, err := equality(v)
		return and{field{path, t}}, err
	}
	var list and
	for name, arg := range value.Fields(v.Data) {
		n, err := parseOperator(path, name, arg, v.Data)
		if err != nil {
			return nil, err
		}
		if n != nil {
			list = append(list, n)
		}
	}
	return list, nil
}

// parseOperator reads one operator of a document of operators, whole.
func parseOperator(path, name string, arg value.Value, whole value.Doc) (node, error) {
	switch name {
	case "$not":
		return parseNot(path, arg)
	case "$ne":
		t, err := equality(arg)
		return not{field{path, t}}, err
	case "$nin":
		t, err := parseIn(name, arg)
		return not{field{path, t}}, err
	case "$all":
		return parseAll(path, arg)
	case "$exists":
		if value.Truthy(arg) {
			return field{path, exists{}}, nil
		}
		return not{field{path, exists{}}}, nil
	case "$options":
		if value.Missing(value.Get(whole, "$regex")) {
			return nil, code.Errorf(code.BadValue, "$options needs a $regex")
		}
		return nil, nil
	case "$regex":
		t, err := parseRegex(arg, value.Get(whole, "$options"))
		return field{path, t}, err
	case "$comment":
		return nil, nil
	case "$near", "$nearSphere", "$geoNear":
		return nil, code.Errorf(code.NoQueryExecutionPlans,
			"error processing query: unable to find index for $geoNear query")
	}
	parse, ok := tests[name]
	if !ok {
		return nil, code.Errorf(code.BadValue, "unknown operator: %s", name)
	}
	t, err := parse(name, arg)
	return field{path, t}, err
}

func parseNot(path string, arg value.Value) (node, error) {
	if pattern(arg) {
		t, err := parseRegex(arg, value.Value{})
		return not{field{path, t}}, err
	}
	if !isOperators(arg) {
		return nil, code.Errorf(code.BadValue, "$not needs a regex or a document")
	}
	list, err := parseCondition(path, arg)
	return not{list}, err
}

func parseAll(path string, arg value.Value) (node, error) {
	if !value.IsArray(arg) {
		return nil, code.Errorf(code.BadValue, "$all needs an array")
	}
	var list and
	for _, item := range value.Items(arg.Data) {
		var n and
		var err error
		if name, _ := value.First(value.Inner(item)); name == "$elemMatch" {
			n, err = parseCondition(path, item)
		} else {
			var t test
			t, err = equality(item)
			n = and{field{path, t}}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, n...)
	}
	if len(list) == 0 {
		return constant(false), nil
	}
	return list, nil
}
