package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
)

const (
	// A service waits for its database at start, and asks again every databaseRetry.
	databaseRetry = 250 * time.Millisecond
	databaseWait  = time.Minute
)

// MongoDB's error codes for those who may not.
const (
	codeUnauthorized         = 13
	codeAuthenticationFailed = 18
)

// OpenDatabase connects to a MongoDB database and fills its empty collections. It waits for a
// server that cannot be reached; one that refuses the credentials is a reason to give up.
func (s *Service) OpenDatabase(ctx context.Context, uri, name string, seed map[string][]any) (*mongo.Database, error) {
	s.Log.Info("Initializing DB connection...", slog.String("database", name))
	client, err := s.Mongo(uri)
	if err != nil {
		return nil, err
	}
	db := client.Database(name)
	deadline := time.Now().Add(databaseWait)
	for {
		err := fill(ctx, db, seed)
		if err == nil {
			s.Log.Info("DB connection initialized", slog.String("database", name))
			return db, nil
		}
		if refused(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return nil, err
		}
		s.Log.Warn("Failed to connect to MongoDB, try again", slog.Any("error", err))
		select {
		case <-time.After(databaseRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fill inserts the seed's documents into the collections that have none. A collection without documents is only asked
// for.
func fill(ctx context.Context, db *mongo.Database, seed map[string][]any) error {
	for name, docs := range seed {
		n, err := db.Collection(name).CountDocuments(ctx, bson.D{})
		if err != nil {
			return fmt.Errorf("count %s: %w", name, err)
		}
		if n > 0 || len(docs) == 0 {
			continue
		}
		for i, d := range docs {
			if docs[i], err = identified(d, fmt.Sprintf("%s-%d", name, i+1)); err != nil {
				return err
			}
		}
		_, err = db.Collection(name).InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
		if err != nil && !mongo.IsDuplicateKeyError(err) { // Another replica may be doing the same.
			return fmt.Errorf("insert into %s: %w", name, err)
		}
	}
	return nil
}

// identified gives a document an _id if it has none, so that inserting it twice does nothing.
func identified(doc any, id string) (any, error) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var d bson.D
	if err := bson.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if len(d) > 0 && d[0].Key == "_id" {
		return d, nil
	}
	return append(bson.D{{Key: "_id", Value: id}}, d...), nil
}

// refused reports whether a server answered that we may not.
func refused(err error) bool {
	var ce mongo.CommandError
	if errors.As(err, &ce) && (ce.Code == codeUnauthorized || ce.Code == codeAuthenticationFailed) {
		return true
	}
	var ae *auth.Error
	return errors.As(err, &ae)
}

// FindAll reads the documents that match.
func FindAll[T any](ctx context.Context, s *Service, c *mongo.Collection, filter any) ([]T, error) {
	var docs []T
	err := s.Store(ctx, "mongodb", "find "+c.Name(), func(ctx context.Context) error {
		cursor, err := c.Find(ctx, filter)
		if err != nil {
			return err
		}
		return cursor.All(ctx, &docs)
	})
	return docs, err
}

// Documents turns a list into the documents that [Service.OpenDatabase] fills a collection with.
func Documents[T any](docs []T) []any {
	list := make([]any, len(docs))
	for i, d := range docs {
		list[i] = d
	}
	return list
}
