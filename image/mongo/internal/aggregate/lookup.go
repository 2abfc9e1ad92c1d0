package aggregate

import (
	"maps"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// lookup is $lookup: each document gets an array of those of another collection that belong to it.
type lookup struct {
	from, as, local, foreign string
	let                      map[string]expr.Expr
	pipeline                 *Pipeline
}

func parseLookup(arg value.Value) (stage, error) {
	d := value.Inner(arg)
	l := &lookup{let: map[string]expr.Expr{}}
	for name, to := range map[string]*string{
		"from": &l.from, "as": &l.as, "localField": &l.local,
		"foreignField": &l.foreign,
	} {
		*to, _ = value.Str(value.Get(d, name))
	}
	if l.as == "" || l.from == "" {
		return nil, code.Errorf(code.FailedToParse, "must specify 'from' and 'as' fields for a $lookup")
	}
	for name, v := range value.Fields(value.Inner(value.Get(d, "let"))) {
		e, err := expr.Parse(v)
		if err != nil {
			return nil, err
		}
		l.let[name] = e
	}
	spec := value.Get(d, "pipeline")
	if value.Missing(spec) {
		if l.local == "" || l.foreign == "" {
			return nil, code.Errorf(code.FailedToParse,
				"$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
		}
		spec = value.Array()
	}
	var err error
	l.pipeline, err = Parse(spec)
	return each(l.join), err
}

func (l *lookup) join(env *Env, d value.Doc) (value.Doc, error) {
	inner := &Env{Find: env.Find, Vars: maps.Clone(env.Vars)}
	for name, e := range l.let {
		v, err := expr.Eval(e, d, env.Vars)
		if err != nil {
			return nil, err
		}
		if inner.Vars == nil {
			inner.Vars = map[string]value.Value{}
		}
		inner.Vars[name] = orNull(v)
	}
	filter := &query.Filter{}
	if l.local != "" {
		var err error
		if filter, err = l.match(d); err != nil {
			return nil, err
		}
	}
	docs := env.Find(l.from, filter)
	if l.pipeline.first != nil { // With the variables of let, which an index cannot know.
		kept := docs[:0:0]
		for _, f := range docs {
			if l.pipeline.first.MatchVars(f, inner.Vars) {
				kept = append(kept, f)
			}
		}
		docs = kept
	}
	out, err := l.pipeline.Run(inner, docs)
	if err != nil {
		return nil, err
	}
	p, err := query.ParseAddFields(value.Make(bson.D{{Key: l.as, Value: bson.D{{Key: "$literal", Value: out}}}}))
	if err != nil {
		return nil, err
	}
	return p.Apply(d, query.Match{Index: -1}, nil)
}

// match is the filter for the foreign documents: to have the local value, or one of its elements.
func (l *lookup) match(d value.Doc) (*query.Filter, error) {
	local := orNull(expr.Field(value.OfDoc(d), l.local))
	cond := bson.D{{Key: "$eq", Value: local}}
	if value.IsArray(local) {
		cond = bson.D{{Key: "$in", Value: local}}
	}
	return query.Parse(value.Make(bson.D{{Key: l.foreign, Value: cond}}))
}

func parseUnwind(arg value.Value) (stage, error) {
	path, ok := value.Str(arg)
	index, keep := "", false
	if value.IsDoc(arg) {
		path, ok = value.Str(value.Get(arg.Data, "path"))
		index, _ = value.Str(value.Get(arg.Data, "includeArrayIndex"))
		keep = value.Truthy(value.Get(arg.Data, "preserveNullAndEmptyArrays"))
	}
	if !ok {
		return nil, code.Errorf(28808, "expected a string as the path for $unwind stage, got %s", value.TypeName(arg))
	}
	path, ok = strings.CutPrefix(path, "$")
	if !ok {
		return nil, code.Errorf(28818, "path option to $unwind stage should be prefixed with a '$': %s", path)
	}
	return func(_ *Env, docs []value.Doc) ([]value.Doc, error) {
		var out []value.Doc
		for _, d := range docs {
			got, err := unwind(d, path, index, keep)
			if err != nil {
				return nil, err
			}
			out = append(out, got...)
		}
		return out, nil
	}, nil
}

func unwind(d value.Doc, path, index string, keep bool) ([]value.Doc, error) {
	v := value.At(d, path)
	with := func(item value.Value, at any) (value.Doc, error) {
		fields := bson.D{}
		if value.Missing(item) {
			fields = append(fields, bson.E{Key: path, Value: "$$REMOVE"})
		} else {
			fields = append(fields, bson.E{Key: path, Value: bson.D{{Key: "$literal", Value: item}}})
		}
		if index != "" {
			fields = append(fields, bson.E{Key: index, Value: bson.D{{Key: "$literal", Value: at}}})
		}
		p, err := query.ParseAddFields(value.Make(fields))
		if err != nil {
			return nil, err
		}
		return p.Apply(d, query.Match{Index: -1}, nil)
	}
	var out []value.Doc
	switch {
	case value.IsArray(v) && value.Count(v.Data) > 0:
		for i, item := range value.Items(v.Data) {
			got, err := with(item, int64(i))
			if err != nil {
				return nil, err
			}
			out = append(out, got)
		}
		return out, nil
	case value.IsArray(v), value.Missing(v), value.IsNull(v):
		if !keep {
			return nil, nil
		}
		if value.IsArray(v) {
			v = value.Value{}
		}
	}
	got, err := with(v, nil)
	return append(out, got), err
}
