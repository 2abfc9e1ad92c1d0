package hotel

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	geoCost      = 250 * time.Microsecond
	nearRadius   = 10 // km
	nearResults  = 5
	earthRadius  = 6371 // km
	geoDatabase  = "geo-db"
	geoDocuments = "geo"
)

// geoMain is the program geo: it finds hotels near a point.
func geoMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "geo")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := s.OpenDatabase(ctx, "mongodb://admin:admin@"+c["GeoMongoAddress"]+"/?authSource=admin", geoDatabase,
		map[string][]any{geoDocuments: service.Documents(points())})
	if err != nil {
		return s.Fatal(ctx, "Failed to initialize geo database", err)
	}
	hotels, err := service.FindAll[point](ctx, s, db.Collection(geoDocuments), bson.D{})
	if err != nil {
		return s.Fatal(ctx, "Failed to get geo data", err)
	}
	s.Log.Info("Built geo index", slog.Int("points", len(hotels)))
	return serve(ctx, s, c, newConsul(s, c), "GeoPort", geoCost, func(srv *grpc.Server) {
		hotelpb.RegisterGeoServer(srv, &geo{s: s, hotels: hotels})
	})
}

type geo struct {
	hotelpb.UnimplementedGeoServer
	s      *service.Service
	hotels []point
}

// Nearby returns the nearest hotels within reach, nearest first.
func (g *geo) Nearby(_ context.Context, req *hotelpb.NearbyRequest) (*hotelpb.NearbyResult, error) {
	type near struct {
		id string
		km float64
	}
	var found []near
	for _, h := range g.hotels {
		if km := distance(req.Lat, req.Lon, h.Lat, h.Lon); km <= nearRadius {
			found = append(found, near{h.HotelID, km})
		}
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.km, b.km), cmp.Compare(a.id, b.id)) })
	res := &hotelpb.NearbyResult{}
	for _, n := range found[:min(len(found), nearResults)] {
		res.HotelIds = append(res.HotelIds, n.id)
	}
	return res, nil
}

// distance is the great-circle distance between two points in degrees, in km: the haversine
// formula, 2 R asin(sqrt(sin²(Δφ/2) + cos φ1 cos φ2 sin²(Δλ/2))).
func distance(lat1, lon1, lat2, lon2 float64) float64 {
	rad := func(deg float64) float64 { return deg * math.Pi / 180 }
	sin2 := func(x float64) float64 { return math.Sin(x) * math.Sin(x) }
	a := sin2(rad(lat2-lat1)/2) + math.Cos(rad(lat1))*math.Cos(rad(lat2))*sin2(rad(lon2-lon1)/2)
	return 2 * earthRadius * math.Asin(math.Sqrt(min(a, 1)))
}
