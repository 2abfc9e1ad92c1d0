package update

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// checkArg checks what can be told of a modifier's argument without a document.
func checkArg(op, path string, arg value.Value) error {
	switch op {
	case "$inc", "$mul":
		if !value.IsNumber(arg) {
			verb := map[string]string{"$inc": "increment", "$mul": "multiply"}[op]
			return code.Errorf(code.TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb, path,
				value.ValueText(arg))
		}
	case "$pop":
		if n, ok := value.Int(arg); !ok || n != 1 && n != -1 {
			return code.Errorf(code.FailedToParse, "$pop expects 1 or -1, found: %s", value.ValueText(arg))
		}
	case "$pullAll":
		if !value.IsArray(arg) {
			return code.Errorf(code.BadValue, "$pullAll requires an array argument but was given a %s",
				value.TypeName(arg))
		}
	case "$rename":
		to, ok := value.Str(arg)
		if !ok {
			return code.Errorf(code.BadValue, "The 'to' field for $rename must be a string: %s: %s", path,
				value.ValueText(arg))
		}
		if to == path {
			return code.Errorf(code.BadValue, "The source and target field for $rename must differ: %s: \"%s\"", path,
				to)
		}
		return checkPath(to)
	}
	return nil
}

func set(c *context, path []string, arg value.Value) error {
	t, err := c.root.reach(path)
	if err != nil {
		return err
	}
	if v := t.value(); value.Exists(v) && v.Type == arg.Type && value.Equal(v, arg) {
		return nil
	}
	t.assign(arg)
	return nil
}

func setOnInsert(c *context, path []string, arg value.Value) error {
	if !c.insert {
		return nil
	}
	return set(c, path, arg)
}

func unset(c *context, path []string, _ value.Value) error {
	c.root.remove(path)
	return nil
}

// number returns the field at a path, which must be a number or be missing.
func (c *context) number(op string, path []string) (*tree, value.Value, error) {
	t, err := c.root.reach(path)
	if err != nil {
		return nil, value.Value{}, err
	}
	v := t.value()
	if value.Exists(v) && !value.IsNumber(v) {
		return nil, v, code.Errorf(code.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. {_id: %s} has the field '%s' of non-numeric type %s",
			op, value.ValueText(c.id), last(path), value.TypeName(v))
	}
	return t, v, nil
}

func inc(c *context, path []string, arg value.Value) error {
	t, v, err := c.number("$inc", path)
	if err != nil {
		return err
	}
	if value.Missing(v) {
		t.assign(arg)
		return nil
	}
	t.assign(expr.Add(v, arg))
	return nil
}

func mul(c *context, path []string, arg value.Value) error {
	t, v, err := c.number("$mul", path)
	if err != nil {
		return err
	}
	if value.Missing(v) {
		v = value.Int32(0)
	}
	t.assign(expr.Multiply(v, arg))
	return nil
}

func least(c *context, path []string, arg value.Value) error    { return extreme(c, path, arg, -1) }
func greatest(c *context, path []string, arg value.Value) error { return extreme(c, path, arg, 1) }

func extreme(c *context, path []string, arg value.Value, sign int) error {
	t, err := c.root.reach(path)
	if err != nil {
		return err
	}
	if v := t.value(); value.Missing(v) || value.Compare(arg, v)*sign > 0 {
		t.assign(arg)
	}
	return nil
}

func rename(c *context, path []string, arg value.Value) error {
	from := c.root.find(path)
	if from == nil {
		return nil
	}
	v := from.value()
	c.root.remove(path)
	name, _ := value.Str(arg)
	to, err := c.root.reach(strings.Split(name, "."))
	if err != nil {
		return err
	}
	to.assign(v)
	return nil
}

func currentDate(c *context, path []string, arg value.Value) error {
	v := value.Of(c.now)
	kind, _ := value.Str(value.Get(value.Inner(arg), "$type"))
	switch {
	case value.IsDoc(arg) && kind == "timestamp":
		v = value.Of(bson.Timestamp{T: uint32(c.now.Unix()), I: 1})
	case value.IsDoc(arg) && kind != "date":
		return code.Errorf(code.BadValue,
			"The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : "+
				"{$type: 'date'}}}")
	case !value.IsDoc(arg) && arg.Type != value.Bool(true).Type:
		return code.Errorf(code.BadValue,
			"%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: "+
				"'timestamp/date'}).", value.TypeName(arg))
	}
	return set(c, path, v)
}
