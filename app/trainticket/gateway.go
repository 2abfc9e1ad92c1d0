package trainticket

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

// door is a path of the API: which service has it, and whether one must have logged in.
type door struct {
	method, path string
	to           string
	guarded      bool
}

// doors are what of the services can be reached from outside.
var doors = []door{
	{"POST", "/api/v1/users/login", "ts-auth-service", false},
	{"POST", "/api/v1/userservice/users/register", "ts-user-service", false},
	{"GET", "/api/v1/stationservice/stations", "ts-station-service", false},
	{"GET", "/api/v1/stationservice/stations/id/{name}", "ts-station-service", false},
	{"GET", "/api/v1/trainservice/trains", "ts-train-service", false},
	{"GET", "/api/v1/routeservice/routes", "ts-route-service", false},
	{"GET", "/api/v1/priceservice/prices", "ts-price-service", false},
	{"GET", "/api/v1/travelservice/trips", "ts-travel-service", false},
	{"POST", "/api/v1/travelservice/trips/left", "ts-travel-service", false},
	{"POST", "/api/v1/preserveservice/preserve", "ts-preserve-service", true},
	{"POST", "/api/v1/orderservice/order/refresh", "ts-order-service", true},
	{"POST", "/api/v1/inside_pay_service/inside_payment", "ts-inside-payment-service", true},
	{"GET", "/api/v1/inside_pay_service/inside_payment/account/{id}", "ts-inside-payment-service", true},
	{"GET", "/api/v1/cancelservice/cancel/{order}/{login}", "ts-cancel-service", true},
	{"GET", "/api/v1/notifyservice/notification/order/{id}", "ts-notification-service", true},
}

// gatewayPart is where users come in.
var gatewayPart = part{name: "ts-gateway-service", start: func(_ context.Context, s *server) error {
	key, err := tokenKey(s)
	if err != nil {
		return err
	}
	s.mux.Handle("GET /{$}", page.New(html))
	for _, d := range doors {
		name, _, _ := strings.Cut(d.path, "/{")
		s.HandleFunc(s.mux, d.method+" "+d.path, name, cost, func(w http.ResponseWriter, r *http.Request) {
			d.serve(s, key, w, r)
		})
	}
	return nil
}}

// serve sends a request on, with who it is from.
func (d door) serve(s *server, key string, w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		answer(w, http.StatusBadRequest, response[any]{Msg: "the body cannot be read: " + err.Error()})
		return
	}
	header := http.Header{requestHeader: {requestNumber()}}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if c, ok := readToken(key, token, time.Now()); ok {
		header.Set(accountHeader, c.User)
	} else if d.guarded {
		answer(w, http.StatusUnauthorized, response[any]{Msg: "log in first: the token is missing, wrong or too old"})
		return
	}
	s.Inject(ctx, propagation.HeaderCarrier(header))
	resp, err := send(ctx, s, d.to, d.method, r.URL.EscapedPath(), body, header)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			s.Log.ErrorContext(ctx, "Cannot reach "+d.to, slog.Any("error", err))
		}
		answer(w, http.StatusServiceUnavailable, response[any]{Msg: d.to + " is unavailable"})
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		s.Log.ErrorContext(ctx, d.to+" failed", slog.String("path", r.URL.Path), slog.Int("status", resp.StatusCode))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(resp.Body, maxBody))
}

// requestNumber draws a UUID of version 4.
func requestNumber() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
