package hotel

import (
	"context"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const profileCost = 200 * time.Microsecond

// profileMain is the program profile: it describes hotels.
func profileMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "profile")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := s.OpenDatabase(ctx, "mongodb://"+c["ProfileMongoAddress"], "profile-db",
		map[string][]any{"hotels": service.Documents(profiles())})
	if err != nil {
		return s.Fatal(ctx, "Failed to initialize profile database", err)
	}
	p := &profile{s: s, hotels: db.Collection("hotels"), cache: s.Memcached(c["ProfileMemcAddress"])}
	return serve(ctx, s, c, newConsul(s, c), "ProfilePort", profileCost, func(srv *grpc.Server) {
		hotelpb.RegisterProfileServer(srv, p)
	})
}

type profile struct {
	hotelpb.UnimplementedProfileServer
	s      *service.Service
	hotels *mongo.Collection
	cache  *memcache.Client
}

// GetProfiles describes hotels in the order they were asked for; unknown ones are left out.
func (p *profile) GetProfiles(ctx context.Context, req *hotelpb.ProfilesRequest) (*hotelpb.ProfilesResult, error) {
	found, err := service.Cached(ctx, p.s, p.cache, req.HotelIds, p.load)
	if err != nil {
		return nil, err
	}
	res := &hotelpb.ProfilesResult{}
	for _, id := range req.HotelIds {
		h, ok := found[id]
		if !ok {
			continue
		}
		a := h.Address
		res.Hotels = append(res.Hotels, &hotelpb.Hotel{
			Id: h.ID, Name: h.Name, PhoneNumber: h.PhoneNumber, Description: h.Description,
			Address: &hotelpb.Address{
				StreetNumber: a.StreetNumber, StreetName: a.StreetName, City: a.City, State: a.State,
				Country: a.Country, PostalCode: a.PostalCode, Lat: a.Lat, Lon: a.Lon,
			},
		})
	}
	return res, nil
}

func (p *profile) load(ctx context.Context, ids []string) (map[string]hotelProfile, error) {
	docs, err := service.FindAll[hotelProfile](ctx, p.s, p.hotels, bson.M{"id": bson.M{"$in": ids}})
	if err != nil {
		return nil, err
	}
	found := make(map[string]hotelProfile, len(docs))
	for _, h := range docs {
		found[h.ID] = h
	}
	return found, nil
}
