package noise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/record"
)

const (
	// joined is how many documents a slow query looks at: a MongoDB server takes a little more for it than the 100 ms
	// from which on it logs a query. Users who come meanwhile wait for as long: they must be few.
	joined = 110_000
	// queryTimeout is how long it may take, on a busy machine.
	queryTimeout = 20 * time.Second
)

var errSmall = errors.New("no collection is large enough")

// query has somebody ask a store, one that no fault reaches, for a report without an index to make it quick.
func (l *Life) query(ctx context.Context, r *rand.Rand) {
	services := l.Env.App.Services
	for _, i := range r.Perm(len(services)) {
		s := services[i]
		if s.Kind != "mongodb" || slices.Contains(l.reached, s.Name) {
			continue
		}
		if l.report(ctx, s.Name) == nil {
			l.note(record.Change{What: "slow query", Service: s.Name})
			return
		}
	}
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// report joins the largest collection of a store with itself, by a field that has no index.
func (l *Life) report(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	client, err := mongo.Connect(options.Client().SetAppName("report").
		ApplyURI(fmt.Sprintf("mongodb://%s.%s:27017/?directConnection=true", service, l.Env.App.Namespace)).
		SetDialer(dialer(l.Env.Dial)).SetServerSelectionTimeout(calmTimeout))
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	}()
	largest, size, err := largestCollection(ctx, client)
	if err != nil {
		return err
	}
	pipeline, ok := selfJoin(largest.Name(), size)
	if !ok {
		return errSmall
	}
	cursor, err := largest.Aggregate(ctx, pipeline)
	if err != nil {
		return err
	}
	return cursor.Close(ctx)
}

func largestCollection(ctx context.Context, client *mongo.Client) (largest *mongo.Collection, size int64, err error) {
	databases, err := client.ListDatabaseNames(ctx, bson.D{})
	if err != nil {
		return nil, 0, err
	}
	for _, name := range databases {
		if slices.Contains([]string{"admin", "config", "local"}, name) {
			continue
		}
		collections, err := client.Database(name).ListCollectionNames(ctx, bson.D{})
		if err != nil {
			return nil, 0, err
		}
		for _, c := range collections {
			n, err := client.Database(name).Collection(c).EstimatedDocumentCount(ctx)
			if err != nil {
				return nil, 0, err
			}
			if n > size {
				largest, size = client.Database(name).Collection(c), n
			}
		}
	}
	if largest == nil {
		return nil, 0, errSmall
	}
	return largest, size, nil
}

// selfJoin is a join of so many documents with themselves, once or, if they are few, twice. It is not to be had of very
// few.
func selfJoin(collection string, size int64) (pipeline bson.A, ok bool) {
	join := func(pipeline bson.A) bson.D {
		d := bson.D{{Key: "from", Value: collection}, {Key: "as", Value: "related"}}
		if pipeline == nil {
			d = append(d, bson.E{Key: "localField", Value: "_id"}, bson.E{Key: "foreignField", Value: "related_to"})
		} else {
			d = append(d, bson.E{Key: "pipeline", Value: pipeline})
		}
		return bson.D{{Key: "$lookup", Value: d}}
	}
	last, each := join(nil), size
	if size*size < joined {
		last, each = join(bson.A{join(nil), bson.D{{Key: "$count", Value: "n"}}}), size*size
	}
	first := (joined + each - 1) / max(each, 1)
	if size == 0 || first > size {
		return nil, false
	}
	return bson.A{bson.D{{Key: "$limit", Value: first}}, last, bson.D{{Key: "$count", Value: "n"}}}, true
}
