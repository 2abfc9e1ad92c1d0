package hotel

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

const frontendCost = 300 * time.Microsecond

// frontendMain is the program frontend: the HTTP API visitors use.
func frontendMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "frontend")
	if err != nil {
		return err
	}
	defer s.Close()
	cs := newConsul(s, c)
	conns := map[string]*grpc.ClientConn{}
	for _, name := range []string{"search", "profile", "recommendation", "user", "reservation"} {
		if conns[name], err = cs.dial("srv-" + name); err != nil {
			return s.Fatal(ctx, "Failed to dial "+name, err)
		}
	}
	f := &frontend{
		s:              s,
		search:         hotelpb.NewSearchClient(conns["search"]),
		profile:        hotelpb.NewProfileClient(conns["profile"]),
		recommendation: hotelpb.NewRecommendationClient(conns["recommendation"]),
		user:           hotelpb.NewUserClient(conns["user"]),
		reservation:    hotelpb.NewReservationClient(conns["reservation"]),
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", page.New(html))
	s.HandleFunc(mux, "/hotels", "/hotels", frontendCost, f.hotels)
	s.HandleFunc(mux, "/recommendations", "/recommendations", frontendCost, f.recommendations)
	s.HandleFunc(mux, "/user", "/user", frontendCost, f.login)
	s.HandleFunc(mux, "/reservation", "/reservation", frontendCost, f.reserve)
	s.Log.Info(fmt.Sprintf("Starting server on port %s...", c["FrontendPort"]))
	return s.ServeHTTP(ctx, mux, c.address("FrontendPort"))
}

type frontend struct {
	s              *service.Service
	search         hotelpb.SearchClient
	profile        hotelpb.ProfileClient
	recommendation hotelpb.RecommendationClient
	user           hotelpb.UserClient
	reservation    hotelpb.ReservationClient
}

// hotels finds hotels near a point with free rooms.
func (f *frontend) hotels(w http.ResponseWriter, r *http.Request) {
	in, out := r.FormValue("inDate"), r.FormValue("outDate")
	if in == "" || out == "" {
		f.reject(w, "Please specify inDate/outDate params")
		return
	}
	lat, lon, ok := f.location(w, r)
	if !ok {
		return
	}
	found, err := f.search.Nearby(r.Context(), &hotelpb.SearchRequest{Lat: lat, Lon: lon, InDate: in, OutDate: out})
	if err != nil {
		f.fail(w, r, "search", err)
		return
	}
	free, err := f.reservation.CheckAvailability(r.Context(),
		&hotelpb.ReservationRequest{HotelIds: found.HotelIds, InDate: in, OutDate: out, RoomNumber: 1})
	if err != nil {
		f.fail(w, r, "reservation", err)
		return
	}
	f.describe(w, r, free.HotelIds)
}

// recommendations names the best hotels.
func (f *frontend) recommendations(w http.ResponseWriter, r *http.Request) {
	lat, lon, ok := f.location(w, r)
	if !ok {
		return
	}
	require := r.FormValue("require")
	if require != "dis" && require != "rate" && require != "price" {
		f.reject(w, "Please specify require params")
		return
	}
	best, err := f.recommendation.GetRecommendations(r.Context(),
		&hotelpb.RecommendationsRequest{Require: require, Lat: lat, Lon: lon})
	if err != nil {
		f.fail(w, r, "recommendation", err)
		return
	}
	f.describe(w, r, best.HotelIds)
}

// login checks a user's password.
func (f *frontend) login(w http.ResponseWriter, r *http.Request) {
	ok, done := f.authenticate(w, r)
	if done {
		return
	}
	message := "Login successfully!"
	if !ok {
		message = "Failed. Please check your username and password. "
	}
	f.reply(w, map[string]string{"message": message})
}

// reserve books rooms for a user.
func (f *frontend) reserve(w http.ResponseWriter, r *http.Request) {
	in, out, hotel := r.FormValue("inDate"), r.FormValue("outDate"), r.FormValue("hotelId")
	if in == "" || out == "" {
		f.reject(w, "Please specify inDate/outDate params")
		return
	}
	if hotel == "" {
		f.reject(w, "Please specify hotelId params")
		return
	}
	customer := r.FormValue("customerName")
	if customer == "" {
		f.reject(w, "Please specify customerName params")
		return
	}
	rooms, err := strconv.ParseInt(r.FormValue("number"), 10, 32)
	if err != nil || rooms < 1 {
		rooms = 1
	}
	ok, done := f.authenticate(w, r)
	if done {
		return
	}
	message := "Failed. Please check your username and password. "
	if ok {
		booked, err := f.reservation.MakeReservation(r.Context(), &hotelpb.ReservationRequest{
			CustomerName: customer, HotelIds: []string{hotel}, InDate: in, OutDate: out, RoomNumber: int32(rooms),
		})
		if err != nil {
			f.fail(w, r, "reservation", err)
			return
		}
		message = "Reserve successfully!"
		if len(booked.HotelIds) == 0 {
			message = "Failed. Already reserved. "
		}
	}
	f.reply(w, map[string]string{"message": message})
}

// authenticate checks the user of a request. Done means that it has been answered.
func (f *frontend) authenticate(w http.ResponseWriter, r *http.Request) (ok, done bool) {
	name, password := r.FormValue("username"), r.FormValue("password")
	if name == "" || password == "" {
		f.reject(w, "Please specify username and password")
		return false, true
	}
	res, err := f.user.CheckUser(r.Context(), &hotelpb.CheckUserRequest{Username: name, Password: password})
	if err != nil {
		f.fail(w, r, "user", err)
		return false, true
	}
	return res.Correct, false
}

// location reads the point a request is about, or rejects it.
func (f *frontend) location(w http.ResponseWriter, r *http.Request) (lat, lon float64, ok bool) {
	lat, errLat := strconv.ParseFloat(r.FormValue("lat"), 64)
	lon, errLon := strconv.ParseFloat(r.FormValue("lon"), 64)
	if errLat != nil || errLon != nil {
		f.reject(w, "Please specify location params")
		return 0, 0, false
	}
	return lat, lon, true
}

// describe answers with hotels as GeoJSON.
func (f *frontend) describe(w http.ResponseWriter, r *http.Request, ids []string) {
	locale := r.FormValue("locale")
	if locale == "" {
		locale = "en"
	}
	res, err := f.profile.GetProfiles(r.Context(), &hotelpb.ProfilesRequest{HotelIds: ids, Locale: locale})
	if err != nil {
		f.fail(w, r, "profile", err)
		return
	}
	features := []any{}
	for _, h := range res.Hotels {
		features = append(features, map[string]any{
			"type": "Feature", "id": h.Id,
			"properties": map[string]string{"name": h.Name, "phone_number": h.PhoneNumber},
			"geometry":   map[string]any{"type": "Point", "coordinates": []float64{h.Address.Lon, h.Address.Lat}},
		})
	}
	f.reply(w, map[string]any{"type": "FeatureCollection", "features": features})
}

func (f *frontend) reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *frontend) reject(w http.ResponseWriter, message string) {
	http.Error(w, message, http.StatusBadRequest)
}

// fail answers with what a service behind could not do.
func (f *frontend) fail(w http.ResponseWriter, r *http.Request, service string, err error) {
	f.s.Log.ErrorContext(r.Context(), "Request failed", slog.String("url", r.URL.Path), slog.String("service", service),
		slog.Any("error", err))
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
