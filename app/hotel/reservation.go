package hotel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	reservationCost = 250 * time.Microsecond
	maxNights       = 90
)

// reservationMain is the program reservation: it books rooms.
func reservationMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "reservation")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := s.OpenDatabase(ctx, "mongodb://"+c["ReserveMongoAddress"], "reservation-db", map[string][]any{
		"number": service.Documents(capacities()), "reservation": service.Documents(reservations()),
		"night": service.Documents(nightsOf(reservations())),
	})
	if err != nil {
		return s.Fatal(ctx, "Failed to initialize reservation database", err)
	}
	r := &reservation{
		s: s, cache: s.Memcached(c["ReserveMemcAddress"]),
		capacity: db.Collection("number"), reservations: db.Collection("reservation"), nights: db.Collection("night"),
	}
	s.Recall(r.recall)
	return serve(ctx, s, c, newConsul(s, c), "ReservePort", reservationCost, func(srv *grpc.Server) {
		hotelpb.RegisterReservationServer(srv, r)
	})
}

// reservation keeps, beside the bookings, how many rooms of a hotel are taken in a night, in one
// document each. Booking is a conditional increment of those, so that several replicas cannot sell
// the last room twice.
type reservation struct {
	hotelpb.UnimplementedReservationServer
	s            *service.Service
	cache        *memcache.Client
	capacity     *mongo.Collection
	reservations *mongo.Collection
	nights       *mongo.Collection
}

// CheckAvailability returns those of the hotels that have the rooms in every night.
func (r *reservation) CheckAvailability(ctx context.Context,
	req *hotelpb.ReservationRequest,
) (*hotelpb.ReservationResult, error) {
	dates, err := stay(req)
	if err != nil {
		return nil, err
	}
	capacities, err := r.capacities(ctx, req.HotelIds)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, h := range req.HotelIds {
		for _, d := range dates {
			keys = append(keys, nightID(h, d))
		}
	}
	taken, err := service.Cached(ctx, r.s, r.cache, keys, r.taken)
	if err != nil {
		return nil, err
	}
	res := &hotelpb.ReservationResult{}
next:
	for _, h := range req.HotelIds {
		for _, d := range dates {
			if taken[nightID(h, d)]+int(req.RoomNumber) > capacities[h] {
				continue next
			}
		}
		res.HotelIds = append(res.HotelIds, h)
	}
	return res, nil
}

// MakeReservation books rooms of the first hotel, or returns no hotel if they are taken.
func (r *reservation) MakeReservation(ctx context.Context,
	req *hotelpb.ReservationRequest,
) (*hotelpb.ReservationResult, error) {
	dates, err := stay(req)
	if err != nil {
		return nil, err
	}
	if len(req.HotelIds) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no hotel to reserve")
	}
	hotel, rooms := req.HotelIds[0], int(req.RoomNumber)
	capacities, err := r.capacities(ctx, req.HotelIds[:1])
	if err != nil {
		return nil, err
	}
	limit, ok := capacities[hotel]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no hotel %q", hotel)
	}
	for i, d := range dates {
		booked, err := r.book(ctx, hotel, d, rooms, limit)
		if err == nil && booked {
			continue
		}
		for _, d := range dates[:i] {
			err = errors.Join(err, r.release(ctx, hotel, d, rooms))
		}
		return &hotelpb.ReservationResult{}, err
	}
	doc := booking{
		HotelID: hotel, CustomerName: req.CustomerName, InDate: req.InDate, OutDate: req.OutDate,
		Number: rooms,
	}
	err = r.s.Store(ctx, "mongodb", "insert reservation", func(ctx context.Context) error {
		_, err := r.reservations.InsertOne(ctx, doc)
		return err
	})
	if err != nil {
		for _, d := range dates {
			err = errors.Join(err, r.release(ctx, hotel, d, rooms))
		}
		return nil, err
	}
	logBooked(r.s.Log, time.Now(), doc)
	return &hotelpb.ReservationResult{HotelIds: []string{hotel}}, nil
}

// book takes rooms for one night if the hotel has them.
func (r *reservation) book(ctx context.Context, hotel, date string, rooms, limit int) (bool, error) {
	if rooms > limit {
		return false, nil
	}
	var after night
	full := false
	err := r.s.Store(ctx, "mongodb", "findAndModify night", func(ctx context.Context) error {
		err := r.nights.FindOneAndUpdate(ctx,
			bson.M{"_id": nightID(hotel, date), "taken": bson.M{"$lte": limit - rooms}},
			bson.M{"$inc": bson.M{"taken": rooms}, "$setOnInsert": bson.M{"hotelId": hotel, "date": date}},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After),
		).Decode(&after)
		if full = mongo.IsDuplicateKeyError(err); full {
			return nil // The night is there, and too full to match: that is an answer, not a failure.
		}
		return err
	})
	if err != nil || full {
		return false, err
	}
	service.Keep(ctx, r.s, r.cache, nightID(hotel, date), after.Taken)
	return true, nil
}

// release gives the rooms of a night back, even if the caller has gone.
func (r *reservation) release(ctx context.Context, hotel, date string, rooms int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.StoreTimeout)
	defer cancel()
	_ = r.cache.Delete(nightID(hotel, date))
	return r.s.Store(ctx, "mongodb", "update night", func(ctx context.Context) error {
		_, err := r.nights.UpdateByID(ctx, nightID(hotel, date), bson.M{"$inc": bson.M{"taken": -rooms}})
		return err
	})
}

// taken reads how many rooms are taken in nights.
func (r *reservation) taken(ctx context.Context, ids []string) (map[string]int, error) {
	docs, err := service.FindAll[night](ctx, r.s, r.nights, bson.M{"_id": bson.M{"$in": ids}})
	if err != nil {
		return nil, err
	}
	taken := make(map[string]int, len(ids))
	for _, id := range ids {
		taken[id] = 0
	}
	for _, n := range docs {
		taken[n.ID] = n.Taken
	}
	return taken, nil
}

// capacities returns how many rooms hotels have.
func (r *reservation) capacities(ctx context.Context, hotels []string) (map[string]int, error) {
	keys := make([]string, len(hotels))
	for i, h := range hotels {
		keys[i] = h + "_cap"
	}
	byKey, err := service.Cached(ctx, r.s, r.cache, keys,
		func(ctx context.Context, missing []string) (map[string]int, error) {
			ids := make([]string, len(missing))
			for i, k := range missing {
				ids[i] = k[:len(k)-len("_cap")]
			}
			docs, err := service.FindAll[capacity](ctx, r.s, r.capacity, bson.M{"hotelId": bson.M{"$in": ids}})
			if err != nil {
				return nil, err
			}
			rooms := make(map[string]int, len(docs))
			for _, d := range docs {
				rooms[d.HotelID+"_cap"] = d.Number
			}
			return rooms, nil
		})
	if err != nil {
		return nil, err
	}
	rooms := make(map[string]int, len(byKey))
	for k, v := range byKey {
		rooms[k[:len(k)-len("_cap")]] = v
	}
	return rooms, nil
}

// stay returns the dates of a request's nights.
func stay(req *hotelpb.ReservationRequest) ([]string, error) {
	in, err := time.Parse(time.DateOnly, req.InDate)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "inDate: %v", err)
	}
	out, err := time.Parse(time.DateOnly, req.OutDate)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "outDate: %v", err)
	}
	nights := int(out.Sub(in).Hours() / 24)
	if nights < 1 || nights > maxNights || req.RoomNumber < 1 {
		return nil, status.Errorf(codes.InvalidArgument, "%d rooms from %s to %s cannot be reserved", req.RoomNumber,
			req.InDate, req.OutDate)
	}
	dates := make([]string, nights)
	for i := range dates {
		dates[i] = in.AddDate(0, 0, i).Format(time.DateOnly)
	}
	return dates, nil
}

func nightID(hotel, date string) string { return fmt.Sprintf("%s_%s", hotel, date) }

// logBooked logs a booking at a time, from one place for all times.
func logBooked(log *slog.Logger, at time.Time, b booking) {
	service.LogAt(log, slog.LevelInfo, at, "Reserved", "hotel", b.HotelID, "customer", b.CustomerName, "in", b.InDate,
		"out", b.OutDate, "rooms", b.Number)
}
