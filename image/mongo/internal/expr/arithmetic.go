package expr

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

var arithmetic = map[string]operator{
	"$add":      {0, many, add},
	"$multiply": {0, many, multiply},
	"$subtract": {2, 2, subtract},
	"$divide":   {2, 2, divide},
	"$mod":      {2, 2, mod},
	"$abs":      {1, 1, unary(math.Abs)},
	"$ceil":     {1, 1, unary(math.Ceil)},
	"$floor":    {1, 1, unary(math.Floor)},
	"$sqrt":     {1, 1, toDouble(math.Sqrt)},
	"$ln":       {1, 1, toDouble(math.Log)},
	"$log10":    {1, 1, toDouble(math.Log10)},
	"$exp":      {1, 1, toDouble(math.Exp)},
	"$sin":      {1, 1, toDouble(math.Sin)},
	"$cos":      {1, 1, toDouble(math.Cos)},
	"$pow":      {2, 2, pow},
	"$round":    {1, 2, rounding(math.RoundToEven)},
	"$trunc":    {1, 2, rounding(math.Trunc)},
	"$sum":      {0, many, over(Sum)},
	"$avg":      {0, many, over(Avg)},
	"$min":      {0, many, over(Min)},
	"$max":      {0, many, over(Max)},
}

func numeric(name string, args []value.Value) error {
	for _, v := range args {
		if !value.IsNumber(v) {
			return code.Errorf(code.TypeMismatch, "%s only supports numeric types, not %s", name, value.TypeName(v))
		}
	}
	return nil
}

// Add sums two numbers. The sum has the wider type of both, and grows where it must.
func Add(a, b value.Value) value.Value {
	return combine(a, b, func(x, y int64) (int64, bool) {
		z := x + y
		return z, (x > 0) == (y > 0) && (z > 0) != (x > 0) && x != 0 && y != 0
	}, func(x, y float64) float64 { return x + y })
}

// Multiply multiplies two numbers, as Add adds them.
func Multiply(a, b value.Value) value.Value {
	return combine(a, b, func(x, y int64) (int64, bool) {
		z := x * y
		return z, x != 0 && (z/x != y || x == -1 && y == math.MinInt64)
	}, func(x, y float64) float64 { return x * y })
}

func combine(a, b value.Value, ints func(x, y int64) (z int64, overflow bool),
	floats func(x, y float64) float64,
) value.Value {
	if isInt(a) && isInt(b) {
		x, _ := value.Int(a)
		y, _ := value.Int(b)
		if z, overflow := ints(x, y); !overflow {
			return integer(z, a.Type == bsoncore.TypeInt64 || b.Type == bsoncore.TypeInt64)
		}
	}
	x, _ := value.Float(a)
	y, _ := value.Float(b)
	return value.Double(floats(x, y))
}

func isInt(v value.Value) bool {
	return v.Type == bsoncore.TypeInt32 || v.Type == bsoncore.TypeInt64
}

// integer encodes n in 32 bits if it fits and need not be long.
func integer(n int64, long bool) value.Value {
	if !long && int64(int32(n)) == n {
		return value.Int32(int32(n))
	}
	return value.Int64(n)
}

func add(name string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	sum, date := value.Int32(0), false
	for _, v := range args {
		if v.Type == bsoncore.TypeDateTime {
			if date {
				return v, code.Errorf(16612, "only one date allowed in an $add expression")
			}
			date, v = true, value.Int64(v.DateTime())
		}
		if !value.IsNumber(v) {
			return v, code.Errorf(code.TypeMismatch, "$add only supports numeric or date types, not %s",
				value.TypeName(v))
		}
		sum = Add(sum, v)
	}
	if date {
		ms, _ := value.Float(sum)
		return dateTime(int64(ms)), nil
	}
	return sum, nil
}

func dateTime(ms int64) value.Value {
	return value.Value{Type: bsoncore.TypeDateTime, Data: bsoncore.AppendDateTime(nil, ms)}
}

func multiply(name string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	if err := numeric(name, args); err != nil {
		return value.Value{}, err
	}
	product := value.Int32(1)
	for _, v := range args {
		product = Multiply(product, v)
	}
	return product, nil
}

func subtract(name string, args []value.Value) (value.Value, error) {
	a, b := args[0], args[1]
	if anyNothing(args) {
		return value.Null(), nil
	}
	if a.Type == bsoncore.TypeDateTime {
		if b.Type == bsoncore.TypeDateTime {
			return value.Int64(a.DateTime() - b.DateTime()), nil
		}
		if ms, ok := value.Float(b); ok {
			return dateTime(a.DateTime() - int64(ms)), nil
		}
	}
	if !value.IsNumber(a) || !value.IsNumber(b) {
		return a, code.Errorf(16556, "cant $subtract a%s from a %s", value.TypeName(b), value.TypeName(a))
	}
	return Add(a, Multiply(b, value.Int32(-1))), nil
}

func divide(name string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	if err := numeric(name, args); err != nil {
		return value.Value{}, err
	}
	x, _ := value.Float(args[0])
	y, _ := value.Float(args[1])
	if y == 0 {
		return value.Value{}, code.Errorf(16608, "can't $divide by zero")
	}
	return value.Double(x / y), nil
}

func mod(name string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	if err := numeric(name, args); err != nil {
		return value.Value{}, err
	}
	x, _ := value.Float(args[0])
	y, _ := value.Float(args[1])
	if y == 0 {
		return value.Value{}, code.Errorf(16610, "can't $mod by zero")
	}
	if isInt(args[0]) && isInt(args[1]) {
		i, _ := value.Int(args[0])
		j, _ := value.Int(args[1])
		return integer(i%j, args[0].Type == bsoncore.TypeInt64 || args[1].Type == bsoncore.TypeInt64), nil
	}
	return value.Double(math.Mod(x, y)), nil
}

// unary is a function that keeps the type of its argument.
func unary(f func(float64) float64) func(string, []value.Value) (value.Value, error) {
	return func(name string, args []value.Value) (value.Value, error) {
		v := args[0]
		if nothing(v) {
			return value.Null(), nil
		}
		if err := numeric(name, args); err != nil {
			return v, err
		}
		x, _ := value.Float(v)
		if isInt(v) {
			return integer(int64(f(x)), v.Type == bsoncore.TypeInt64), nil
		}
		return value.Double(f(x)), nil
	}
}

// toDouble is a function whose result is a double.
func toDouble(f func(float64) float64) func(string, []value.Value) (value.Value, error) {
	return func(name string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		if err := numeric(name, args); err != nil {
			return value.Value{}, err
		}
		x, _ := value.Float(args[0])
		return value.Double(f(x)), nil
	}
}

func pow(name string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	if err := numeric(name, args); err != nil {
		return value.Value{}, err
	}
	x, _ := value.Float(args[0])
	y, _ := value.Float(args[1])
	z := math.Pow(x, y)
	if isInt(args[0]) && isInt(args[1]) && y >= 0 && math.Abs(z) < 1<<53 {
		return integer(int64(z), args[0].Type == bsoncore.TypeInt64 || args[1].Type == bsoncore.TypeInt64), nil
	}
	return value.Double(z), nil
}

func rounding(f func(float64) float64) func(string, []value.Value) (value.Value, error) {
	return func(name string, args []value.Value) (value.Value, error) {
		if anyNothing(args) {
			return value.Null(), nil
		}
		if err := numeric(name, args); err != nil {
			return value.Value{}, err
		}
		places := int64(0)
		if len(args) == 2 {
			places, _ = value.Int(args[1])
		}
		x, _ := value.Float(args[0])
		scale := math.Pow10(int(places))
		y := f(x*scale) / scale
		if isInt(args[0]) {
			return integer(int64(y), args[0].Type == bsoncore.TypeInt64), nil
		}
		return value.Double(y), nil
	}
}

// over applies an accumulator to the arguments, or to the elements of the only one.
func over(f func([]value.Value) value.Value) func(string, []value.Value) (value.Value, error) {
	return func(_ string, args []value.Value) (value.Value, error) {
		if len(args) == 1 && value.IsArray(args[0]) {
			args = value.List(value.Inner(args[0]))
		}
		return f(args), nil
	}
}

// Sum adds the numbers of a list and ignores the rest.
func Sum(list []value.Value) value.Value {
	sum := value.Int32(0)
	for _, v := range list {
		if value.IsNumber(v) {
			sum = Add(sum, v)
		}
	}
	return sum
}

// Avg is the mean of the numbers of a list, or null.
func Avg(list []value.Value) value.Value {
	n := 0
	for _, v := range list {
		if value.IsNumber(v) {
			n++
		}
	}
	if n == 0 {
		return value.Null()
	}
	sum, _ := value.Float(Sum(list))
	return value.Double(sum / float64(n))
}

// Min is the least value of a list, or null.
func Min(list []value.Value) value.Value { return extreme(list, -1) }

// Max is the greatest value of a list, or null.
func Max(list []value.Value) value.Value { return extreme(list, 1) }

func extreme(list []value.Value, sign int) value.Value {
	best := value.Null()
	for _, v := range list {
		if !nothing(v) && (nothing(best) || value.Compare(v, best)*sign > 0) {
			best = v
		}
	}
	return best
}
