package hotel

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/kit"
)

const searchCost = 150 * time.Microsecond

// searchMain is the program search: hotels that are near and have a price.
func searchMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "search")
	if err != nil {
		return err
	}
	defer s.Close()
	cs := newConsul(s, c)
	geo, err := cs.dial("srv-geo")
	if err != nil {
		return s.Fatal(ctx, "Failed to dial geo", err)
	}
	rate, err := cs.dial("srv-rate")
	if err != nil {
		return s.Fatal(ctx, "Failed to dial rate", err)
	}
	return serve(ctx, s, c, cs, "SearchPort", searchCost, func(srv *grpc.Server) {
		hotelpb.RegisterSearchServer(srv, &search{geo: hotelpb.NewGeoClient(geo), rate: hotelpb.NewRateClient(rate)})
	})
}

type search struct {
	hotelpb.UnimplementedSearchServer
	geo  hotelpb.GeoClient
	rate hotelpb.RateClient
}

// Nearby returns the hotels near a point that have a rate plan.
func (s *search) Nearby(ctx context.Context, req *hotelpb.SearchRequest) (*hotelpb.SearchResult, error) {
	near, err := s.geo.Nearby(ctx, &hotelpb.NearbyRequest{Lat: req.Lat, Lon: req.Lon})
	if err != nil {
		return nil, fmt.Errorf("nearby hotels from geo: %w", err)
	}
	rates, err := s.rate.GetRates(ctx, &hotelpb.RatesRequest{
		HotelIds: near.HotelIds, InDate: req.InDate,
		OutDate: req.OutDate,
	})
	if err != nil {
		return nil, fmt.Errorf("rates from rate: %w", err)
	}
	res := &hotelpb.SearchResult{}
	for _, p := range rates.RatePlans {
		res.HotelIds = append(res.HotelIds, p.HotelId)
	}
	return res, nil
}
