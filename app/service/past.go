package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// Grown says which of the data that users have written over weeks is still there. A cluster with a past is older.
var Grown = past.Fading{Dense: 2 * time.Minute, Most: 200, Older: 400, Oldest: 20 * 24 * time.Hour}

// Recall has a function write the data of the past into a store, if the service is told that it has one.
func (s *Service) Recall(write func(ctx context.Context, p *past.Past, r *rand.Rand) error) {
	s.Env.Recall(kit.Keeper, func(ctx context.Context, p *past.Past) error {
		if err := write(ctx, p, rand.New(rand.NewPCG(p.Seed, 0xda7a))); err != nil {
			return fmt.Errorf("write the data of the past: %w", err)
		}
		return nil
	})
}

// IDs makes the IDs that a driver gives to documents, at other times than now.
type IDs struct {
	process [5]byte
	counter uint32
}

// NewIDs returns the IDs that a process would have made.
func NewIDs(r *rand.Rand) *IDs {
	i := &IDs{counter: r.Uint32()}
	binary.BigEndian.PutUint32(i.process[:], r.Uint32())
	i.process[4] = byte(r.Uint32())
	return i
}

// At returns the next ID.
func (i *IDs) At(t time.Time) (id bson.ObjectID) {
	i.counter++
	binary.BigEndian.PutUint32(id[:], uint32(t.Unix()))
	copy(id[4:9], i.process[:])
	id[9], id[10], id[11] = byte(i.counter>>16), byte(i.counter>>8), byte(i.counter)
	return id
}

// InsertAll inserts documents, those that are there already excepted.
func InsertAll(ctx context.Context, c *mongo.Collection, docs []any) error {
	for some := range slices.Chunk(docs, atOnce) {
		_, err := c.InsertMany(ctx, some, options.InsertMany().SetOrdered(false))
		if err != nil && !mongo.IsDuplicateKeyError(err) { // Another replica may have done the same.
			return err
		}
	}
	return nil
}

// WriteAll writes to documents.
func WriteAll(ctx context.Context, c *mongo.Collection, writes []mongo.WriteModel) error {
	for some := range slices.Chunk(writes, atOnce) {
		if _, err := c.BulkWrite(ctx, some, options.BulkWrite().SetOrdered(false)); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many documents are written at once, so that no store says that it was slow.
const atOnce = 50
