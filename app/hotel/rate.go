package hotel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	rateCost      = 200 * time.Microsecond
	rateDatabase  = "rate-db"
	rateDocuments = "inventory"
)

// rateMain is the program rate: it knows what rooms cost.
func rateMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "rate")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := s.OpenDatabase(ctx, "mongodb://admin:admin@"+c["RateMongoAddress"]+"/?authSource=admin", rateDatabase,
		map[string][]any{rateDocuments: service.Documents(ratePlans())})
	if err != nil {
		return s.Fatal(ctx, "Failed to initialize rate database", err)
	}
	r := &rate{s: s, plans: db.Collection(rateDocuments), cache: s.Memcached(c["RateMemcAddress"])}
	return serve(ctx, s, c, newConsul(s, c), "RatePort", rateCost, func(srv *grpc.Server) {
		hotelpb.RegisterRateServer(srv, r)
	})
}

type rate struct {
	hotelpb.UnimplementedRateServer
	s     *service.Service
	plans *mongo.Collection
	cache *memcache.Client
}

// GetRates returns the rate plans of hotels, dearest first.
func (r *rate) GetRates(ctx context.Context, req *hotelpb.RatesRequest) (*hotelpb.RatesResult, error) {
	byHotel, err := service.Cached(ctx, r.s, r.cache, req.HotelIds, r.load)
	if err != nil {
		return nil, err
	}
	res := &hotelpb.RatesResult{}
	for _, id := range req.HotelIds {
		for _, p := range byHotel[id] {
			res.RatePlans = append(res.RatePlans, &hotelpb.RatePlan{
				HotelId: p.HotelID, Code: p.Code, InDate: p.InDate, OutDate: p.OutDate,
				RoomType: &hotelpb.RoomType{
					BookableRate: p.Room.BookableRate, Code: p.Room.Code, Description: p.Room.Description,
					TotalRate: p.Room.TotalRate, TotalRateInclusive: p.Room.TotalRateInclusive, Currency: "USD",
				},
			})
		}
	}
	slices.SortStableFunc(res.RatePlans, func(a, b *hotelpb.RatePlan) int {
		return cmp.Compare(b.RoomType.TotalRate, a.RoomType.TotalRate)
	})
	return res, nil
}

// load reads plans from the database. A hotel without one has an empty list, which is worth caching.
func (r *rate) load(ctx context.Context, hotels []string) (map[string][]ratePlan, error) {
	plans, err := service.FindAll[ratePlan](ctx, r.s, r.plans, bson.M{"hotelId": bson.M{"$in": hotels}})
	if err != nil {
		return nil, err
	}
	byHotel := make(map[string][]ratePlan, len(hotels))
	for _, id := range hotels {
		byHotel[id] = []ratePlan{}
	}
	for _, p := range plans {
		byHotel[p.HotelID] = append(byHotel[p.HotelID], p)
	}
	return byHotel, nil
}
