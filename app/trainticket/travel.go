package trainticket

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/app/service"
)

// Classes of seats, as the original numbers them.
const (
	firstClass  = 2
	secondClass = 3
)

// travelInfo asks for trips at a date.
type travelInfo struct {
	StartingPlace string `json:"startingPlace"`
	EndPlace      string `json:"endPlace"`
	DepartureTime string `json:"departureTime"`
	TripID        string `json:"tripId,omitempty"` // of trip_detail alone
}

// offer is a trip that can be booked.
type offer struct {
	TripID               string `json:"tripId"`
	TrainTypeID          string `json:"trainTypeId"`
	StartingStation      string `json:"startingStation"`
	TerminalStation      string `json:"terminalStation"`
	StartingTime         string `json:"startingTime"`
	EndTime              string `json:"endTime"`
	EconomyClass         int    `json:"economyClass"` // seats that are left
	ConfortClass         int    `json:"confortClass"`
	PriceForEconomyClass string `json:"priceForEconomyClass"`
	PriceForConfortClass string `json:"priceForConfortClass"`
	TotalEconomy         int    `json:"totalEconomyClass"`
	TotalConfort         int    `json:"totalConfortClass"`
}

// travelPart finds trips.
var travelPart = part{"ts-travel-service", "ts", documents("trip", trips), func(_ context.Context, s *server) error {
	const base = "/api/v1/travelservice"
	all[trip](s, "GET "+base+"/trips", base+"/trips", "trip")
	handle(s, "POST "+base+"/trips/left", base+"/trips/left", func(r *http.Request, in travelInfo) ([]offer, error) {
		return offers(r.Context(), s, in)
	})
	handle(s, "POST "+base+"/trip_detail", base+"/trip_detail", func(r *http.Request, in travelInfo) (offer, error) {
		if in.TripID == "" {
			return offer{}, refuse(http.StatusBadRequest, "want a tripId")
		}
		list, err := offers(r.Context(), s, in)
		if err != nil || len(list) == 0 {
			if err == nil {
				err = refuse(http.StatusNotFound, "trip %s does not go from %s to %s", in.TripID, in.StartingPlace,
					in.EndPlace)
			}
			return offer{}, err
		}
		return list[0], nil
	})
	return nil
}}

// offers finds the trips from one station to another, with their prices and the seats that are left.
func offers(ctx context.Context, s *server, in travelInfo) ([]offer, error) {
	if _, err := time.Parse(time.DateOnly, in.DepartureTime); err != nil {
		return nil, refuse(http.StatusBadRequest, "departureTime: want a date such as 2016-05-04")
	}
	ids, err := call[map[string]string](ctx, s, "ts-station-service", http.MethodPost,
		"/api/v1/stationservice/stations/idlist", []string{in.StartingPlace, in.EndPlace})
	if err != nil {
		return nil, err
	}
	from, to := ids[in.StartingPlace], ids[in.EndPlace]
	ways, err := call[[]route](ctx, s, "ts-route-service", http.MethodGet,
		"/api/v1/routeservice/routes/"+url.PathEscape(from)+"/"+url.PathEscape(to), nil)
	if err != nil {
		return nil, err
	}
	byID, filter := map[string]route{}, bson.M{}
	names := bson.A{}
	for _, w := range ways {
		byID[w.ID] = w
		names = append(names, w.ID)
	}
	filter["routeId"] = bson.M{"$in": names}
	if in.TripID != "" {
		filter["_id"] = in.TripID
	}
	found, err := service.FindAll[trip](ctx, s.Service, s.db.Collection("trip"), filter)
	if err != nil {
		return nil, err
	}
	list := make([]offer, len(found))
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range found {
		group.Go(func() (err error) {
			km, _ := byID[t.RouteID].distance(from, to)
			before, _ := byID[t.RouteID].distance(byID[t.RouteID].Stations[0], from)
			list[i], err = offered(ctx, s, t, in, km, before)
			return err
		})
	}
	return list, group.Wait()
}

// offered asks for the train, the price and the seats of a trip.
func offered(ctx context.Context, s *server, t trip, in travelInfo, km, before int) (o offer, err error) {
	var train trainType
	var price priceConfig
	group, asking := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		train, err = call[trainType](asking, s, "ts-train-service", http.MethodGet,
			"/api/v1/trainservice/trains/"+url.PathEscape(t.TrainType), nil)
		return err
	})
	group.Go(func() (err error) {
		price, err = call[priceConfig](asking, s, "ts-price-service", http.MethodGet,
			"/api/v1/priceservice/prices/"+url.PathEscape(t.RouteID)+"/"+url.PathEscape(t.TrainType), nil)
		return err
	})
	if err := group.Wait(); err != nil {
		return o, err
	}
	left, err := call[seatsLeft](ctx, s, "ts-seat-service", http.MethodPost, "/api/v1/seatservice/seats/left_tickets",
		seatInfo{
			TravelDate: in.DepartureTime, TrainNumber: t.ID, Economy: train.EconomyClass, Confort: train.ConfortClass,
		})
	if err != nil {
		return o, err
	}
	start, _ := time.Parse("15:04", t.StartingTime)
	hours := func(km int) time.Duration {
		return time.Duration(km) * time.Hour / time.Duration(max(train.AverageSpeed, 1))
	}
	return offer{
		TripID: t.ID, TrainTypeID: t.TrainType, StartingStation: in.StartingPlace, TerminalStation: in.EndPlace,
		StartingTime: start.Add(hours(before)).Format("15:04"), EndTime: start.Add(hours(before + km)).Format("15:04"),
		EconomyClass: left.Economy, ConfortClass: left.Confort,
		PriceForEconomyClass: money(cents(km, price.BasicPriceRate)),
		PriceForConfortClass: money(cents(km, price.FirstClassPriceRate)),
		TotalEconomy:         train.EconomyClass, TotalConfort: train.ConfortClass,
	}, nil
}

// cents is what a way costs.
func cents(km int, rate float64) int64 { return int64(math.Round(float64(km) * rate * 100)) }

// money writes an amount as the services tell it to each other and to users.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// readMoney reads an amount.
func readMoney(text string) (int64, error) {
	var units, part int64
	n, err := fmt.Sscanf(text, "%d.%02d", &units, &part)
	if n != 2 || err != nil || units < 0 || units > 1e9 || part < 0 || money(units*100+part) != text {
		return 0, refuse(http.StatusBadRequest, "want an amount such as 95.00")
	}
	return units*100 + part, nil
}
