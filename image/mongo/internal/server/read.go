package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/aggregate"
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// selection is what find, count and the like look for.
type selection struct {
	coll       string
	filter     *query.Filter
	order      query.Order
	projection *query.Projection
	skip       int64
	limit      int64 // 0 is none
}

// selection reads the usual fields of a command. The name of the filter differs.
func (k *call) selection(filter string) (*selection, error) {
	s := &selection{}
	var err error
	if s.coll, err = k.coll(); err != nil {
		return nil, err
	}
	if err = checkCollation(k.body); err != nil {
		return nil, err
	}
	d, err := k.doc(filter)
	if err != nil {
		return nil, err
	}
	if s.filter, err = query.Parse(d); err != nil {
		return nil, err
	}
	if d, err = k.doc("sort"); err != nil {
		return nil, err
	}
	if s.order, err = query.ParseOrder(d); err != nil {
		return nil, err
	}
	for _, name := range []string{"projection", "fields"} {
		if d, err = k.doc(name); err != nil {
			return nil, err
		}
		if value.Count(d) > 0 {
			if s.projection, err = query.ParseProjection(d); err != nil {
				return nil, err
			}
		}
	}
	if s.skip, err = k.count("skip", 0); err != nil {
		return nil, err
	}
	return s, nil
}

// docs finds the documents of a selection.
func (k *call) docs(tx *engine.Tx, s *selection) ([]value.Doc, error) {
	c := tx.Collection(k.db, s.coll)
	if err := k.checkHint(c); err != nil {
		return nil, err
	}
	most := 0
	if s.limit > 0 && len(s.order) == 0 {
		most = int(s.skip + s.limit)
	}
	var hits []engine.Hit
	hits, k.stats = c.Search(s.filter, most)
	query.SortBy(s.order, hits, hitDoc)
	hits = hits[min(s.skip, int64(len(hits))):]
	if s.limit > 0 {
		hits = hits[:min(s.limit, int64(len(hits)))]
	}
	docs := make([]value.Doc, len(hits))
	for i, h := range hits {
		var err error
		if docs[i], err = s.projection.Apply(h.Doc, h.Match, nil); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

func hitDoc(h engine.Hit) value.Doc { return h.Doc }

// checkHint refuses an index that is not there.
func (k *call) checkHint(c *engine.Collection) error {
	hint := value.Get(k.body, "hint")
	if value.Missing(hint) || c == nil {
		return nil
	}
	name, isName := value.Str(hint)
	for _, x := range c.Indexes {
		if isName && x.Name == name || value.IsDoc(hint) && value.CompareDocs(x.Key(), hint.Data) == 0 {
			return nil
		}
	}
	if first, _ := value.First(value.Inner(hint)); first == "$natural" || value.IsDoc(hint) && first == "" {
		return nil
	}
	return code.Errorf(code.BadValue, "error processing query: ns=%s planner returned error :: caused by :: hint "+
		"provided does not correspond to an existing index", c.Namespace())
}

func runFind(k *call) (bson.D, error) {
	s, err := k.selection("filter")
	if err != nil {
		return nil, err
	}
	if s.limit, err = k.count("limit", 0); err != nil {
		return nil, err
	}
	batch, err := k.count("batchSize", firstBatch)
	if err != nil {
		return nil, err
	}
	single := k.flag("singleBatch")
	var docs []value.Doc
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		docs, err = k.docs(tx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k.cursorReply(k.db+"."+s.coll, docs, int(batch), single), nil
}

func runCount(k *call) (bson.D, error) {
	s, err := k.selection("query")
	if err != nil {
		return nil, err
	}
	if v, ok := value.Int(value.Get(k.body, "limit")); ok {
		s.limit = max(v, -v)
	}
	n := 0
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		docs, err := k.docs(tx, s)
		n = len(docs)
		return err
	})
	return bson.D{{Key: "n", Value: n}}, err
}

func runDistinct(k *call) (bson.D, error) {
	s, err := k.selection("query")
	if err != nil {
		return nil, err
	}
	key, err := k.str("key")
	if err != nil {
		return nil, err
	}
	var found []value.Value
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		docs, err := k.docs(tx, s)
		for _, d := range docs {
			value.Walk(d, key, func(l value.Leaf) bool {
				if value.Exists(l.Value) && (l.Element || !value.IsArray(l.Value)) {
					found = append(found, l.Value)
				}
				return false
			})
		}
		return err
	})
	slices.SortFunc(found, value.Compare)
	return bson.D{{Key: "values", Value: slices.CompactFunc(found, value.Equal)}}, err
}

func runAggregate(k *call) (bson.D, error) {
	p, err := aggregate.Parse(value.Get(k.body, "pipeline"))
	if err != nil {
		return nil, err
	}
	if err := checkCollation(k.body); err != nil {
		return nil, err
	}
	if value.Missing(value.Get(k.body, "cursor")) && !k.flag("explain") {
		return nil, code.Errorf(code.FailedToParse,
			"The 'cursor' option is required, except for aggregate with the explain argument")
	}
	coll, ok := value.Str(value.Get(k.body, "aggregate"))
	if !ok {
		return nil, code.Errorf(code.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is needed",
			k.db)
	}
	var out []value.Doc
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		var hits []engine.Hit
		hits, k.stats = tx.Collection(k.db, coll).Search(p.Filter(), 0)
		docs := make([]value.Doc, len(hits))
		for i, h := range hits {
			docs[i] = h.Doc
		}
		env := &aggregate.Env{Find: func(name string, f *query.Filter) []value.Doc {
			hits, stats := tx.Collection(k.db, name).Search(f, 0)
			k.stats.Keys, k.stats.Docs = k.stats.Keys+stats.Keys, k.stats.Docs+stats.Docs
			var docs []value.Doc
			for _, h := range hits {
				docs = append(docs, h.Doc)
			}
			return docs
		}}
		out, err = p.Run(env, docs)
		return err
	})
	if err != nil {
		return nil, err
	}
	batch := int64(firstBatch)
	if n, ok := value.Int(value.At(k.body, "cursor.batchSize")); ok {
		batch = n
	}
	return k.cursorReply(k.db+"."+coll, out, int(batch), false), nil
}

// lookups returns the other collections an aggregation reads.
func lookups(pipeline value.Value) (names []string) {
	for _, item := range value.Items(value.Inner(pipeline)) {
		name, arg := value.First(value.Inner(item))
		switch name {
		case "$lookup", "$unionWith", "$graphLookup":
			for _, field := range []string{"from", "coll"} {
				if from, ok := value.Str(value.Get(value.Inner(arg), field)); ok {
					names = append(names, from)
				}
			}
			if from, ok := value.Str(arg); ok {
				names = append(names, from)
			}
			names = append(names, lookups(value.Get(value.Inner(arg), "pipeline"))...)
		case "$facet":
			for _, v := range value.Items(value.Inner(arg)) {
				names = append(names, lookups(v)...)
			}
		}
	}
	return names
}
