package astronomy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	shippingCost = 120 * time.Microsecond
	quoteCost    = 120 * time.Microsecond
	perItem      = 8_99 // cents that it costs to ship a piece
	maxBody      = 1 << 20
)

// amount is money in JSON.
type amount struct {
	CurrencyCode string `json:"currency_code"`
	Units        int64  `json:"units"`
	Nanos        int32  `json:"nanos"`
}

// parcel is what is to be shipped.
type parcel struct {
	Items []struct {
		ProductID string `json:"product_id"`
		Quantity  int32  `json:"quantity"`
	} `json:"items"`
	Address any `json:"address,omitempty"`
}

// shippingMain is the program shipping: what it costs to send things, and sends them.
func shippingMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "shipping")
	if err != nil {
		return err
	}
	defer s.Close()
	h := &shipping{s: s, quote: env.Getenv("QUOTE_ADDR"), client: s.HTTPClient(callTimeout)}
	if h.quote == "" {
		return s.Fatal(ctx, "cannot start shipping", errors.New("QUOTE_ADDR is not set: want http://quote:8080"))
	}
	h.items = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "app_shipping_items_count_total", Help: "Pieces that a quote was asked for.",
	})
	s.Registerer().MustRegister(h.items)
	mux := http.NewServeMux()
	s.HandleFunc(mux, "POST /get-quote", "/get-quote", shippingCost, h.getQuote)
	s.HandleFunc(mux, "POST /ship-order", "/ship-order", shippingCost, h.shipOrder)
	address := listenAddress(env, "SHIPPING_PORT")
	s.Log.Info("shipping service listening", slog.String("address", address))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxBody), address)
}

type shipping struct {
	s      *service.Service
	quote  string
	client *http.Client
	items  prometheus.Counter
}

// getQuote answers what it costs to ship something.
func (h *shipping) getQuote(w http.ResponseWriter, r *http.Request) {
	var p parcel
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := int64(0)
	for _, i := range p.Items {
		n += int64(max(0, i.Quantity))
	}
	h.items.Add(float64(n))
	var dollars json.Number
	err := call(r.Context(), h.client, h.quote+"/getquote", map[string]int64{"numberOfItems": n}, &dollars)
	cost, ok := new(big.Rat).SetString(dollars.String())
	if err == nil && !ok {
		err = fmt.Errorf("quote answers %q", dollars)
	}
	if err != nil {
		h.s.Log.ErrorContext(r.Context(), "Failed to get a quote", slog.Any("error", err))
		http.Error(w, "failed to get a quote: "+err.Error(), http.StatusInternalServerError)
		return
	}
	cost.Mul(cost, big.NewRat(nanosPerUnit, 1))
	m := money("USD", new(big.Int).Quo(cost.Num(), cost.Denom()))
	reply(w, map[string]amount{"cost_usd": {m.CurrencyCode, m.Units, m.Nanos}})
}

// shipOrder sends something, so to speak.
func (h *shipping) shipOrder(w http.ResponseWriter, r *http.Request) {
	var p parcel
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := uuid.NewString()
	h.s.Log.InfoContext(r.Context(), "Tracking ID Created", slog.String("tracking_id", id))
	reply(w, map[string]string{"tracking_id": id})
}

// quoteMain is the program quote: the price of shipping.
func quoteMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "quote")
	if err != nil {
		return err
	}
	defer s.Close()
	quotes := prometheus.NewCounter(prometheus.CounterOpts{Name: "quotes_total", Help: "Quotes that were given."})
	s.Registerer().MustRegister(quotes)
	mux := http.NewServeMux()
	s.HandleFunc(mux, "POST /getquote", "/getquote", quoteCost, func(w http.ResponseWriter, r *http.Request) {
		var q struct{ NumberOfItems *int64 }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.NumberOfItems == nil ||
			*q.NumberOfItems < 0 || *q.NumberOfItems > math.MaxInt32 {
			http.Error(w, "numberOfItems not provided", http.StatusBadRequest)
			return
		}
		quotes.Inc()
		cents := *q.NumberOfItems * perItem
		s.Log.InfoContext(r.Context(), "Calculated quote", slog.String("total",
			fmt.Sprintf("%d.%02d", cents/100, cents%100)))
		reply(w, json.Number(fmt.Sprintf("%d.%02d", cents/100, cents%100)))
	})
	address := listenAddress(env, "QUOTE_PORT")
	s.Log.Info("quote service listening", slog.String("address", address))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxBody), address)
}

// reply answers with JSON.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// call posts JSON to another service, with more headers, and reads what it answers.
func call(ctx context.Context, c *http.Client, url string, question, answer any, header ...string) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, bytes.TrimSpace(data))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}
