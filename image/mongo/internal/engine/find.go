package engine

import (
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Stats tell what a search cost.
type Stats struct {
	Keys, Docs int // looked at
	Plan       string
}

// Hit is a document that was found.
type Hit struct {
	ID    int64
	Doc   value.Doc
	Match query.Match
}

// Search returns the documents of a collection, which may be nil, that match a filter: the first
// limit of them if that is positive.
func (c *Collection) Search(f *query.Filter, limit int) (hits []Hit, stats Stats) {
	if c == nil {
		return nil, Stats{Plan: "EOF"}
	}
	plan := c.PlanFor(f)
	stats.Plan = plan.Summary()
	stats.Keys = c.search(plan, func(id int64, d value.Doc) bool {
		stats.Docs++
		if m, ok := f.Find(d); ok {
			hits = append(hits, Hit{id, d, m})
		}
		return limit <= 0 || len(hits) < limit
	})
	return hits, stats
}
