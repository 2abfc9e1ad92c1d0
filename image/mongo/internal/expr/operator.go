package expr

import (
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// operator computes a value from those of its arguments.
type operator struct {
	min, max int // number of arguments
	apply    func(name string, args []value.Value) (value.Value, error)
}

const many = 1 << 20

// operators that evaluate all their arguments.
var operators = map[string]operator{}

func init() {
	for _, set := range []map[string]operator{arithmetic, logical, texts, arrays, dates, conversions} {
		for name, op := range set {
			operators[name] = op
		}
	}
}

// forms are the operators with arguments of their own shape.
var forms map[string]func(arg value.Value) (Expr, error)

func init() { // Some of them parse expressions in turn.
	forms = map[string]func(arg value.Value) (Expr, error){
		"$literal": func(arg value.Value) (Expr, error) { return literal{arg}, nil },
		"$const":   func(arg value.Value) (Expr, error) { return literal{arg}, nil },
		"$expr":    Parse,
		"$and":     parseLogic(false),
		"$or":      parseLogic(true),
		"$cond":    parseCond,
		"$ifNull":  parseIfNull,
		"$switch":  parseSwitch,
		"$let":     parseLet,
		"$filter":  parseFilter,
		"$map":     parseMap,
		"$reduce":  parseReduce,
		"$dateToString": parseNamed(map[string]bool{"date": true, "format": false, "timezone": false, "onNull": false},
			dateToString),
		"$trim":  parseNamed(map[string]bool{"input": true, "chars": false}, trim(true, true)),
		"$ltrim": parseNamed(map[string]bool{"input": true, "chars": false}, trim(true, false)),
		"$rtrim": parseNamed(map[string]bool{"input": true, "chars": false}, trim(false, true)),
		"$convert": parseNamed(map[string]bool{"input": true, "to": true, "onError": false, "onNull": false},
			convert),
	}
}

type call struct {
	name string
	op   operator
	args []Expr
}

func parseOperator(name string, arg value.Value) (Expr, error) {
	if parse, ok := forms[name]; ok {
		return parse(arg)
	}
	op, ok := operators[name]
	if !ok {
		return nil, code.Errorf(code.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	var args []Expr
	if value.IsArray(arg) {
		list, err := parseArray(arg)
		if err != nil {
			return nil, err
		}
		args = list.(array)
	} else {
		e, err := Parse(arg)
		if err != nil {
			return nil, err
		}
		args = []Expr{e}
	}
	if n := len(args); n < op.min || n > op.max {
		if op.min == op.max {
			return nil, code.Errorf(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, op.min,
				n)
		}
		return nil, code.Errorf(28667, "Expression %s takes at least %d arguments, and at most %d, but %d "+
			"were passed in.", name, op.min, op.max, n)
	}
	return call{name, op, args}, nil
}

func (e call) eval(s *scope) (value.Value, error) {
	args, err := evalAll(e.args, s)
	if err != nil {
		return value.Value{}, err
	}
	return e.op.apply(e.name, args)
}

// nothing reports whether a value is null or missing, which most operators turn into null.
func nothing(v value.Value) bool { return value.Missing(v) || value.IsNull(v) }

func anyNothing(list []value.Value) bool {
	for _, v := range list {
		if nothing(v) {
			return true
		}
	}
	return false
}

// named is an operator whose arguments are named.
type named struct {
	args  map[string]Expr
	apply func(args map[string]value.Value) (value.Value, error)
}

// parseNamed returns the parser of an operator with named arguments, of which some are required.
func parseNamed(known map[string]bool, apply func(map[string]value.Value) (value.Value,
	error),
) func(value.Value) (Expr, error) {
	return func(arg value.Value) (Expr, error) {
		args, err := namedArgs(arg, known)
		return named{args, apply}, err
	}
}

func namedArgs(arg value.Value, known map[string]bool) (map[string]Expr, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(code.FailedToParse, "the expression's argument must be an object, but is %s",
			value.TypeName(arg))
	}
	args := map[string]Expr{}
	for name, v := range value.Fields(arg.Data) {
		if _, ok := known[name]; !ok {
			return nil, code.Errorf(code.FailedToParse, "Unrecognized argument to the expression: %s", name)
		}
		e, err := Parse(v)
		if err != nil {
			return nil, err
		}
		args[name] = e
	}
	for name, required := range known {
		if required && args[name] == nil {
			return nil, code.Errorf(code.FailedToParse, "Missing '%s' parameter to the expression", name)
		}
	}
	return args, nil
}

func (e named) eval(s *scope) (value.Value, error) {
	args := map[string]value.Value{}
	for name, a := range e.args {
		v, err := a.eval(s)
		if err != nil {
			return v, err
		}
		args[name] = v
	}
	return e.apply(args)
}
