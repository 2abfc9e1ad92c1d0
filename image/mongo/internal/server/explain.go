package server

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func runExplain(k *call) (bson.D, error) {
	inner, err := k.doc("explain")
	if err != nil || inner == nil {
		return nil, code.Errorf(code.FailedToParse, "The 'explain' option is required and must be an object")
	}
	name, v := value.First(inner)
	coll, _ := value.Str(v)
	d := value.Inner(value.Get(inner, map[string]string{
		"find": "filter", "count": "query", "distinct": "query",
		"findAndModify": "query",
	}[name]))
	switch name {
	case "update":
		d = value.Inner(value.Get(value.Inner(value.Item(value.Inner(value.Get(inner, "updates")), 0)), "q"))
	case "delete":
		d = value.Inner(value.Get(value.Inner(value.Item(value.Inner(value.Get(inner, "deletes")), 0)), "q"))
	case "aggregate":
		d = value.Inner(value.Get(value.Inner(value.Item(value.Inner(value.Get(inner, "pipeline")), 0)), "$match"))
	}
	f, err := query.Parse(d)
	if err != nil {
		return nil, err
	}
	if d == nil {
		d = value.Make(nil)
	}
	var stats engine.Stats
	var hits []engine.Hit
	stage := bson.D{}
	k.srv.Engine.View(func(tx *engine.Tx) error {
		c := tx.Collection(k.db, coll)
		hits, stats = c.Search(f, 0)
		stage = planStage(c, f, stats.Plan)
		return nil
	})
	k.stats = stats
	reply := bson.D{{Key: "queryPlanner", Value: bson.D{
		{Key: "plannerVersion", Value: 1},
		{Key: "namespace", Value: k.db + "." + coll},
		{Key: "indexFilterSet", Value: false},
		{Key: "parsedQuery", Value: d},
		{Key: "winningPlan", Value: stage},
		{Key: "rejectedPlans", Value: bson.A{}},
	}}}
	if verbosity, _ := value.Str(value.Get(k.body, "verbosity")); verbosity != "queryPlanner" {
		reply = append(reply, bson.E{Key: "executionStats", Value: bson.D{
			{Key: "executionSuccess", Value: true},
			{Key: "nReturned", Value: len(hits)},
			{Key: "executionTimeMillis", Value: 0},
			{Key: "totalKeysExamined", Value: stats.Keys},
			{Key: "totalDocsExamined", Value: stats.Docs},
			{Key: "executionStages", Value: stage},
		}})
	}
	return append(reply, bson.E{Key: "serverInfo", Value: bson.D{
		{Key: "host", Value: k.srv.Env.Hostname},
		{Key: "port", Value: k.srv.Port},
		{Key: "version", Value: Version},
		{Key: "gitVersion", Value: GitVersion},
	}}), nil
}

// planStage describes a plan the way explain does.
func planStage(c *engine.Collection, f *query.Filter, summary string) bson.D {
	name, _, _ := strings.Cut(summary, " ")
	if c == nil || name != "IXSCAN" {
		return bson.D{{Key: "stage", Value: name}, {Key: "direction", Value: "forward"}}
	}
	x := c.PlanFor(f).Index
	return bson.D{{Key: "stage", Value: "FETCH"}, {Key: "inputStage", Value: bson.D{
		{Key: "stage", Value: name},
		{Key: "keyPattern", Value: x.Key()},
		{Key: "indexName", Value: x.Name},
		{Key: "isUnique", Value: x.Unique},
		{Key: "isSparse", Value: x.Sparse},
		{Key: "indexVersion", Value: 2},
		{Key: "direction", Value: "forward"},
	}}}
}
