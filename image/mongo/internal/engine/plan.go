package engine

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Plan is how documents are searched for.
type Plan struct {
	Index *Index // nil is a scan of the collection

	bounds []query.Bounds // of the first paths of the index
}

// Summary is what logs and explain say of the plan.
func (p Plan) Summary() string {
	switch {
	case p.Index == nil:
		return "COLLSCAN"
	case p.Index.Name == IDIndex && len(p.bounds[0].Points) == 1:
		return "IDHACK"
	}
	return "IXSCAN " + value.Text(p.Index.Key())
}

// maxPoints is how many points of an index a plan may visit, for several paths multiply.
const maxPoints = 10_000

// PlanFor chooses how to search for what a filter matches: by the index that covers most of the filter's
// conditions.
func (c *Collection) PlanFor(f *query.Filter) Plan {
	best, bestScore := Plan{}, 0
	for _, x := range c.Indexes {
		if x.partial != nil {
			continue
		}
		p, score := Plan{Index: x}, 0
		points := 1
		for _, path := range x.paths {
			b, ok := f.Bounds(path)
			if !ok || points*max(1, len(b.Points)) > maxPoints {
				break
			}
			p.bounds = append(p.bounds, b)
			if b.Points == nil {
				score++
				break
			}
			points *= max(1, len(b.Points))
			score += 2
			if len(b.Points) == 1 && x.Unique {
				score++
			}
		}
		if score > bestScore {
			best, bestScore = p, score
		}
	}
	return best
}

// search visits the documents a plan finds, until visit returns false. A document is visited once.
// It returns the number of keys it looked at.
func (c *Collection) search(p Plan, visit func(id int64, d value.Doc) bool) (keys int) {
	if p.Index == nil {
		for _, r := range c.records {
			if r.doc != nil && !visit(r.id, r.doc) {
				return 0
			}
		}
		return 0
	}
	seen := map[int64]bool{}
	p.scan(nil, p.bounds, func(e entry) bool {
		keys++
		if p.Index.multikey || len(p.bounds[0].Points) > 1 {
			if seen[e.id] {
				return true
			}
			seen[e.id] = true
		}
		return visit(e.id, c.get(e.id))
	})
	return keys
}

// scan visits the entries that begin with prefix and are within the bounds of what follows.
func (p Plan) scan(prefix []value.Value, bounds []query.Bounds, visit func(entry) bool) bool {
	if len(bounds) == 0 {
		return p.scanRange(prefix, query.Bounds{}, visit)
	}
	b := bounds[0]
	if b.Points == nil {
		return p.scanRange(prefix, b, visit)
	}
	for i, point := range b.Points {
		if i > 0 && value.Equal(point, b.Points[i-1]) {
			continue
		}
		longer := append(prefix[:len(prefix):len(prefix)], point)
		if !p.scan(longer, bounds[1:], visit) {
			return false
		}
	}
	return true
}

func (p Plan) scanRange(prefix []value.Value, b query.Bounds, visit func(entry) bool) bool {
	high := b.High
	if p.Index.multikey && value.Exists(b.Low) {
		high = value.Value{} // Different elements may meet the two ends.
	}
	start := prefix
	switch {
	case value.Exists(b.Low):
		start = append(prefix[:len(prefix):len(prefix)], b.Low)
	case value.Exists(high):
		start = append(prefix[:len(prefix):len(prefix)], leastOf(high))
	}
	more := true
	p.Index.entries.AscendGreaterOrEqual(entry{key: start, id: -1}, func(e entry) bool {
		if compareKeys(e.key[:len(prefix)], prefix) != 0 {
			return false
		}
		if next := len(prefix); value.Exists(high) {
			if c := value.Compare(e.key[next], high); c > 0 || c == 0 && b.HighOpen {
				return false
			}
		} else if value.Exists(b.Low) && value.Rank(e.key[next].Type) > value.Rank(b.Low.Type) {
			return false
		}
		more = visit(e)
		return more
	})
	return more
}

// leastOf returns a value that none of the values comparable with v is less than.
func leastOf(v value.Value) value.Value {
	switch {
	case value.IsNumber(v):
		return value.Double(math.NaN())
	case v.Type == bsoncore.TypeString, v.Type == bsoncore.TypeSymbol:
		return value.String("")
	}
	return value.Value{Type: bsoncore.TypeMinKey}
}
