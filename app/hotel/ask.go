package hotel

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
)

// questions are what only the services can answer: with what the data they start with says.
var questions = map[string]ask.Question{
	"frontend": ask.Page("/recommendations?require=price&lat=38&lon=-122", func(status int, body []byte) error {
		var found struct {
			Features []struct {
				ID         string
				Properties struct{ Name string }
			}
		}
		if status != http.StatusOK || json.Unmarshal(body, &found) != nil || len(found.Features) != 1 ||
			found.Features[0].ID != "2" || found.Features[0].Properties.Name != known[1].name {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}),
	"search": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		lat, lon := place(2)
		r, err := hotelpb.NewSearchClient(c).Nearby(ctx,
			&hotelpb.SearchRequest{Lat: lat, Lon: lon, InDate: "2015-04-09", OutDate: "2015-04-10"})
		return among(r.GetHotelIds(), "2", err)
	}),
	"geo": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		lat, lon := place(40)
		r, err := hotelpb.NewGeoClient(c).Nearby(ctx, &hotelpb.NearbyRequest{Lat: lat, Lon: lon})
		return among(r.GetHotelIds(), "40", err)
	}),
	"rate": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := hotelpb.NewRateClient(c).GetRates(ctx,
			&hotelpb.RatesRequest{HotelIds: []string{"2"}, InDate: "2015-04-09", OutDate: "2015-04-10"})
		if err == nil && (len(r.RatePlans) != 1 || r.RatePlans[0].GetRoomType().GetTotalRate() != 139) {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"profile": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := hotelpb.NewProfileClient(c).GetProfiles(ctx,
			&hotelpb.ProfilesRequest{HotelIds: []string{"1"}, Locale: "en"})
		if err == nil && (len(r.Hotels) != 1 || r.Hotels[0].Name != known[0].name) {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"recommendation": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := hotelpb.NewRecommendationClient(c).GetRecommendations(ctx,
			&hotelpb.RecommendationsRequest{Require: "price", Lat: 38, Lon: -122})
		return among(r.GetHotelIds(), "2", err)
	}),
	"user": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		for password, want := range map[string]bool{"1111111111": true, "wrong": false} {
			r, err := hotelpb.NewUserClient(c).CheckUser(ctx,
				&hotelpb.CheckUserRequest{Username: "Cornell_1", Password: password})
			if err != nil {
				return err
			}
			if r.Correct != want {
				return ask.Wrong("that a password which is right (%v) is not", want)
			}
		}
		return nil
	}),
	"reservation": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		for rooms, want := range map[int32]int{1: 1, 1000: 0} { // No hotel has a thousand.
			r, err := hotelpb.NewReservationClient(c).CheckAvailability(ctx, &hotelpb.ReservationRequest{
				HotelIds: []string{"1"}, InDate: "2014-04-09", OutDate: "2014-04-10", RoomNumber: rooms,
			})
			if err != nil {
				return err
			}
			if len(r.HotelIds) != want {
				return ask.Wrong("%v for %d rooms", r.HotelIds, rooms)
			}
		}
		return nil
	}),
	"consul": ask.Consul("srv-geo"),
	"jaeger": ask.Jaeger("frontend"),
}

// among is an error unless a few hotels were found, and one of them.
func among(ids []string, want string, err error) error {
	if err == nil && (!slices.Contains(ids, want) || len(ids) > nearResults) {
		err = ask.Wrong("%v, without hotel %s", ids, want)
	}
	return err
}
