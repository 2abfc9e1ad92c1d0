// Package aggregate runs aggregation pipelines.
package aggregate

import (
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Pipeline is a parsed pipeline. It is safe for concurrent use.
type Pipeline struct {
	first  *query.Filter // of a $match at the start
	stages []stage
}

// Env is what a pipeline can refer to.
type Env struct {
	// Find returns the documents of another collection of the database that match a filter.
	Find func(collection string, f *query.Filter) []value.Doc
	// Vars are the variables of $lookup's let.
	Vars map[string]value.Value
}

// stage turns documents into others. It must not change the list it gets.
type stage func(env *Env, docs []value.Doc) ([]value.Doc, error)

var stages map[string]func(arg value.Value) (stage, error)

func init() { // Some parse pipelines in turn.
	stages = map[string]func(arg value.Value) (stage, error){
		"$match": parseMatch, "$project": parseProject, "$addFields": parseAddFields, "$set": parseAddFields,
		"$unset": parseUnset, "$sort": parseSort, "$limit": parseLimit, "$skip": parseSkip,
		"$unwind": parseUnwind, "$count": parseCount, "$group": parseGroup, "$lookup": parseLookup,
		"$replaceRoot": parseReplaceRoot, "$replaceWith": parseReplaceWith, "$sample": parseSample,
		"$sortByCount": parseSortByCount, "$facet": parseFacet, "$unionWith": parseUnionWith,
	}
}

// Parse reads a pipeline.
func Parse(v value.Value) (*Pipeline, error) {
	if !value.IsArray(v) {
		return nil, code.Errorf(code.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	p := &Pipeline{}
	for i, item := range value.Items(v.Data) {
		if !value.IsDoc(item) {
			return nil, code.Errorf(code.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		if value.Count(item.Data) != 1 {
			return nil, code.Errorf(40323, "A pipeline stage specification object must contain exactly one field.")
		}
		name, arg := value.First(item.Data)
		if name == "$match" && i == 0 && value.IsDoc(arg) {
			f, err := query.Parse(arg.Data)
			if err != nil {
				return nil, err
			}
			p.first = f
			continue
		}
		parse, ok := stages[name]
		if !ok {
			return nil, code.Errorf(40324, "Unrecognized pipeline stage name: '%s'", name)
		}
		s, err := parse(arg)
		if err != nil {
			return nil, err
		}
		p.stages = append(p.stages, s)
	}
	return p, nil
}

// Filter returns the filter that input documents must match. An index can find them by it.
func (p *Pipeline) Filter() *query.Filter {
	if p.first == nil {
		return &query.Filter{}
	}
	return p.first
}

// Run returns the output of the pipeline for documents that match its filter.
func (p *Pipeline) Run(env *Env, docs []value.Doc) ([]value.Doc, error) {
	var err error
	for _, s := range p.stages {
		if docs, err = s(env, docs); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// Apply runs the whole pipeline on one document, for an update.
func (p *Pipeline) Apply(d value.Doc) (value.Doc, error) {
	out, err := p.Run(&Env{}, []value.Doc{d})
	if err != nil {
		return nil, err
	}
	if p.first != nil || len(out) != 1 {
		return nil, code.Errorf(code.InvalidOptions, "an update's pipeline must give one document")
	}
	return out[0], nil
}

// each is a stage that turns each document into another.
func each(f func(env *Env, d value.Doc) (value.Doc, error)) stage {
	return func(env *Env, docs []value.Doc) ([]value.Doc, error) {
		out := make([]value.Doc, 0, len(docs))
		for _, d := range docs {
			got, err := f(env, d)
			if err != nil {
				return nil, err
			}
			out = append(out, got)
		}
		return out, nil
	}
}

func parseMatch(arg value.Value) (stage, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(15959, "the match filter must be an expression in an object")
	}
	f, err := query.Parse(arg.Data)
	return func(env *Env, docs []value.Doc) ([]value.Doc, error) {
		return slices.DeleteFunc(slices.Clone(docs), func(d value.Doc) bool { return !f.MatchVars(d, env.Vars) }), nil
	}, err
}

func projection(p *query.Projection, err error) (stage, error) {
	return each(func(env *Env, d value.Doc) (value.Doc, error) {
		return p.Apply(d, query.Match{Index: -1}, env.Vars)
	}), err
}

func parseProject(arg value.Value) (stage, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(15969, "$project specification must be an object")
	}
	if value.Count(arg.Data) == 0 {
		return nil, code.Errorf(51272, "Invalid $project :: caused by :: projection specification must have at "+
			"least one field")
	}
	return projection(query.ParseProjection(arg.Data))
}

func parseAddFields(arg value.Value) (stage, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(40272, "$addFields specification stage must be an object, got %s", value.TypeName(arg))
	}
	return projection(query.ParseAddFields(arg.Data))
}

func parseUnset(arg value.Value) (stage, error) {
	items := []value.Value{arg}
	if value.IsArray(arg) {
		items = value.List(arg.Data)
	}
	var paths []string
	for _, v := range items {
		s, ok := value.Str(v)
		if !ok {
			return nil, code.Errorf(31120,
				"$unset specification must be a string or an array containing only string values")
		}
		paths = append(paths, s)
	}
	return projection(query.Exclude(paths))
}

func parseSort(arg value.Value) (stage, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(15973, "the $sort key specification must be an object")
	}
	order, err := query.ParseOrder(arg.Data)
	if err == nil && len(order) == 0 {
		err = code.Errorf(15976, "$sort stage must have at least one sort key")
	}
	return func(_ *Env, docs []value.Doc) ([]value.Doc, error) {
		docs = slices.Clone(docs)
		order.Sort(docs)
		return docs, nil
	}, err
}

func parseLimit(arg value.Value) (stage, error) {
	n, ok := value.Int(arg)
	if !ok || n <= 0 {
		return nil, code.Errorf(15958, "the limit must be positive")
	}
	return func(_ *Env, docs []value.Doc) ([]value.Doc, error) { return docs[:min(n, int64(len(docs)))], nil }, nil
}

func parseSkip(arg value.Value) (stage, error) {
	n, ok := value.Int(arg)
	if !ok || n < 0 {
		return nil, code.Errorf(15972, "the skip must be a non-negative number")
	}
	return func(_ *Env, docs []value.Doc) ([]value.Doc, error) { return docs[min(n, int64(len(docs))):], nil }, nil
}

func parseCount(arg value.Value) (stage, error) {
	name, ok := value.Str(arg)
	if !ok || name == "" || strings.HasPrefix(name, "$") || strings.Contains(name, ".") {
		return nil, code.Errorf(40156, "the count field must be a non-empty string that does not begin with "+
			"'$' or contain '.'")
	}
	return func(_ *Env, docs []value.Doc) ([]value.Doc, error) {
		if len(docs) == 0 {
			return nil, nil
		}
		return []value.Doc{value.Make(bson.D{{Key: name, Value: len(docs)}})}, nil
	}, nil
}

func parseReplaceRoot(arg value.Value) (stage, error) {
	return parseReplaceWith(value.Get(value.Inner(arg), "newRoot"))
}

func parseReplaceWith(arg value.Value) (stage, error) {
	e, err := expr.Parse(arg)
	return each(func(env *Env, d value.Doc) (value.Doc, error) {
		v, err := expr.Eval(e, d, env.Vars)
		if err != nil {
			return nil, err
		}
		if !value.IsDoc(v) {
			return nil, code.Errorf(40228,
				"'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of "+
					"resulting value: '%s'.", value.ValueText(v), value.TypeName(v))
		}
		return v.Data, nil
	}), err
}

func parseSample(arg value.Value) (stage, error) {
	n, ok := value.Int(value.Get(value.Inner(arg), "size"))
	if !ok || n < 0 {
		return nil, code.Errorf(28747, "size argument to $sample must be a positive number")
	}
	return func(_ *Env, docs []value.Doc) ([]value.Doc, error) {
		docs = slices.Clone(docs)
		rand.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		return docs[:min(n, int64(len(docs)))], nil
	}, nil
}

func parseSortByCount(arg value.Value) (stage, error) {
	group, err := parseGroup(value.Of(bson.D{
		{Key: "_id", Value: arg},
		{Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}},
	}))
	if err != nil {
		return nil, err
	}
	return func(env *Env, docs []value.Doc) ([]value.Doc, error) {
		docs, err := group(env, docs)
		query.Order{{Path: "count", Descending: true}}.Sort(docs)
		return docs, err
	}, nil
}

func parseFacet(arg value.Value) (stage, error) {
	var names []string
	var parts []*Pipeline
	for name, v := range value.Fields(value.Inner(arg)) {
		p, err := Parse(v)
		if err != nil {
			return nil, err
		}
		names, parts = append(names, name), append(parts, p)
	}
	return func(env *Env, docs []value.Doc) ([]value.Doc, error) {
		var b value.Builder
		for i, p := range parts {
			in := slices.DeleteFunc(slices.Clone(docs), func(d value.Doc) bool { return !p.Filter().Match(d) })
			out, err := p.Run(env, in)
			if err != nil {
				return nil, err
			}
			b.Add(names[i], value.Of(out))
		}
		return []value.Doc{b.Doc()}, nil
	}, nil
}

func parseUnionWith(arg value.Value) (stage, error) {
	coll, ok := value.Str(arg)
	pipeline := value.Array()
	if value.IsDoc(arg) {
		coll, ok = value.Str(value.Get(arg.Data, "coll"))
		if p := value.Get(arg.Data, "pipeline"); value.Exists(p) {
			pipeline = p
		}
	}
	if !ok {
		return nil, code.Errorf(code.FailedToParse,
			"the $unionWith stage specification must be an object or string, but found %s", value.TypeName(arg))
	}
	p, err := Parse(pipeline)
	return func(env *Env, docs []value.Doc) ([]value.Doc, error) {
		more, err := p.Run(env, env.Find(coll, p.Filter()))
		return slices.Concat(docs, more), err
	}, err
}
