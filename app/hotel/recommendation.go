package hotel

import (
	"context"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const recommendationCost = 200 * time.Microsecond

// recommendationMain is the program recommendation: it names the best hotels.
func recommendationMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "recommendation")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := s.OpenDatabase(ctx, "mongodb://"+c["RecommendMongoAddress"], "recommendation-db",
		map[string][]any{"recommendation": service.Documents(recommendables())})
	if err != nil {
		return s.Fatal(ctx, "Failed to initialize recommendation database", err)
	}
	hotels, err := service.FindAll[recommendable](ctx, s, db.Collection("recommendation"), bson.D{})
	if err != nil {
		return s.Fatal(ctx, "Failed to get hotels data", err)
	}
	s.Log.Info("Loaded hotels", slog.Int("hotels", len(hotels)))
	return serve(ctx, s, c, newConsul(s, c), "RecommendPort", recommendationCost, func(srv *grpc.Server) {
		hotelpb.RegisterRecommendationServer(srv, &recommendation{hotels: hotels})
	})
}

type recommendation struct {
	hotelpb.UnimplementedRecommendationServer
	hotels []recommendable
}

// GetRecommendations returns the hotels that are best by distance, rate or price; all that are
// equally good.
func (r *recommendation) GetRecommendations(_ context.Context,
	req *hotelpb.RecommendationsRequest,
) (*hotelpb.RecommendationsResult, error) {
	var badness func(recommendable) float64
	switch req.Require {
	case "dis":
		badness = func(h recommendable) float64 { return distance(req.Lat, req.Lon, h.Lat, h.Lon) }
	case "rate":
		badness = func(h recommendable) float64 { return -h.Rate }
	case "price":
		badness = func(h recommendable) float64 { return h.Price }
	default:
		return nil, status.Errorf(codes.InvalidArgument, "wrong require parameter %q: dis, rate or price", req.Require)
	}
	res := &hotelpb.RecommendationsResult{}
	var best float64
	for i, h := range r.hotels {
		switch b := badness(h); {
		case i == 0 || b < best:
			best, res.HotelIds = b, []string{h.HotelID}
		case b == best:
			res.HotelIds = append(res.HotelIds, h.HotelID)
		}
	}
	return res, nil
}
