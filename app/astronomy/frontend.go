package astronomy

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var shopPage string

const (
	apiCost  = 300 * time.Microsecond
	pageCost = 4 * time.Millisecond // to render a page takes longer than to answer a call
	// shownRecommendations are how many recommendations visitors see.
	shownRecommendations = 4
	dollars              = "USD"
)

// frontendMain is the program frontend: the shop's pages, and the API that they use.
func frontendMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "frontend")
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := newFrontend(s)
	if err != nil {
		return s.Fatal(ctx, "cannot start frontend", err)
	}
	mux := http.NewServeMux()
	shop := page.New(telemetryOf(env).in(shopPage))
	for _, p := range []struct{ pattern, name string }{
		{"GET /{$}", "/"},
		{"GET /product/{id}", "/product/{id}"},
		{"GET /cart", "/cart"},
		{"GET /cart/checkout/{id}", "/cart/checkout/{id}"},
	} {
		f.handle(mux, p.pattern, p.name, pageCost, shop.ServeHTTP)
	}
	for _, a := range []struct {
		pattern string
		answer  func(*http.Request) (any, error)
	}{
		{"GET /api/products", f.listProducts},
		{"GET /api/products/{id}", f.oneProduct},
		{"GET /api/recommendations", f.recommendations},
		{"GET /api/data", f.advertise},
		{"GET /api/cart", f.getCart},
		{"POST /api/cart", f.addToCart},
		{"DELETE /api/cart", f.emptyCart},
		{"GET /api/currency", f.currencies},
		{"GET /api/shipping", f.shippingCost},
		{"POST /api/checkout", f.placeOrder},
		{"GET /api/product-reviews/{id}", f.productReviews},
		{"GET /api/product-reviews-avg-score/{id}", f.averageScore},
		{"POST /api/product-ask-ai-assistant/{id}", f.askAssistant},
	} {
		_, path, _ := strings.Cut(a.pattern, " ")
		f.handle(mux, a.pattern, path, apiCost, f.api(a.answer))
	}
	address := listenAddress(env, "PORT")
	s.Log.Info("frontend listening", slog.String("address", address))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxBody), address)
}

type frontend struct {
	s               *service.Service
	ad              demopb.AdServiceClient
	cart            demopb.CartServiceClient
	checkout        demopb.CheckoutServiceClient
	currency        demopb.CurrencyServiceClient
	catalog         demopb.ProductCatalogServiceClient
	recommendation  demopb.RecommendationServiceClient
	reviews         demopb.ProductReviewServiceClient
	shippingAddress string
	client          *http.Client
	requests        *prometheus.CounterVec
}

func newFrontend(s *service.Service) (*frontend, error) {
	conns := map[string]*grpc.ClientConn{}
	for _, name := range []string{
		"AD", "CART", "CHECKOUT", "CURRENCY", "PRODUCT_CATALOG", "PRODUCT_REVIEWS", "RECOMMENDATION",
	} {
		var opts []grpc.DialOption
		if name == "AD" {
			opts = once() // Who fails to advertise is not asked again.
		}
		var err error
		if conns[name], err = dial(s, name+"_ADDR", opts...); err != nil {
			return nil, err
		}
	}
	f := &frontend{
		s: s, client: s.HTTPClient(callTimeout), shippingAddress: s.Env.Getenv("SHIPPING_ADDR"),
		ad: demopb.NewAdServiceClient(conns["AD"]), cart: demopb.NewCartServiceClient(conns["CART"]),
		checkout:       demopb.NewCheckoutServiceClient(conns["CHECKOUT"]),
		currency:       demopb.NewCurrencyServiceClient(conns["CURRENCY"]),
		catalog:        demopb.NewProductCatalogServiceClient(conns["PRODUCT_CATALOG"]),
		recommendation: demopb.NewRecommendationServiceClient(conns["RECOMMENDATION"]),
		reviews:        demopb.NewProductReviewServiceClient(conns["PRODUCT_REVIEWS"]),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "app_frontend_requests_total", Help: "Requests, by method, target and status.",
		}, []string{"method", "target", "status"}),
	}
	if f.shippingAddress == "" {
		return nil, fmt.Errorf("SHIPPING_ADDR is not set: want http://shipping:8080")
	}
	s.Registerer().MustRegister(f.requests)
	return f, nil
}

// handle adds a handler whose requests are counted.
func (f *frontend) handle(mux *http.ServeMux, pattern, name string, cost time.Duration, h http.HandlerFunc) {
	f.s.HandleFunc(mux, pattern, name, cost, func(w http.ResponseWriter, r *http.Request) {
		rec := &codeRecorder{w, http.StatusOK}
		h(rec, r)
		f.requests.WithLabelValues(r.Method, name, fmt.Sprint(rec.code)).Inc()
	})
}

type codeRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (r *codeRecorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// badRequest is an error of who asks.
type badRequest string

func (e badRequest) Error() string { return string(e) }

// api answers with JSON, or with what a service behind could not do. An answer that is nil is none.
func (f *frontend) api(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := answer(r)
		if bad, ok := err.(badRequest); ok {
			http.Error(w, string(bad), http.StatusBadRequest)
			return
		}
		switch {
		case err != nil:
			f.s.Log.ErrorContext(r.Context(), "Request failed", slog.String("url", r.URL.Path), slog.Any("error", err))
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			reply(w, v)
		}
	}
}

// currencyOf is the currency that somebody wants to pay in.
func currencyOf(r *http.Request) string { return cmp.Or(r.FormValue("currencyCode"), dollars) }

// convert converts a price unless it is in that currency.
func (f *frontend) convert(ctx context.Context, m *demopb.Money, to string) (*demopb.Money, error) {
	if to == m.GetCurrencyCode() {
		return m, nil
	}
	return f.currency.Convert(ctx, &demopb.CurrencyConversionRequest{From: m, ToCode: to})
}

// shown is a product as visitors see it, with its price in their currency.
func (f *frontend) shown(ctx context.Context, p *demopb.Product, currency string) (*productJSON, error) {
	m, err := f.convert(ctx, p.PriceUsd, currency)
	if err != nil {
		return nil, err
	}
	return &productJSON{p.Id, p.Name, p.Description, p.Picture, moneyOf(m), p.Categories}, nil
}

// product finds one product.
func (f *frontend) product(ctx context.Context, id, currency string) (*productJSON, error) {
	p, err := f.catalog.GetProduct(ctx, &demopb.GetProductRequest{Id: id})
	if err != nil {
		return nil, err
	}
	return f.shown(ctx, p, currency)
}

func (f *frontend) listProducts(r *http.Request) (any, error) {
	all, err := f.catalog.ListProducts(r.Context(), &demopb.Empty{})
	if err != nil {
		return nil, err
	}
	list := make([]*productJSON, len(all.Products))
	for i, p := range all.Products {
		if list[i], err = f.shown(r.Context(), p, currencyOf(r)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (f *frontend) oneProduct(r *http.Request) (any, error) {
	return f.product(r.Context(), r.PathValue("id"), currencyOf(r))
}

func (f *frontend) recommendations(r *http.Request) (any, error) {
	var ids []string
	for _, v := range r.URL.Query()["productIds"] {
		ids = append(ids, strings.Split(v, ",")...)
	}
	found, err := f.recommendation.ListRecommendations(r.Context(), &demopb.ListRecommendationsRequest{
		UserId: r.FormValue("sessionId"), ProductIds: ids,
	})
	if err != nil {
		return nil, err
	}
	list := []*productJSON{}
	for _, id := range found.ProductIds[:min(len(found.ProductIds), shownRecommendations)] {
		p, err := f.product(r.Context(), id, currencyOf(r))
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func (f *frontend) advertise(r *http.Request) (any, error) {
	var keys []string
	for _, v := range r.URL.Query()["contextKeys"] {
		if v != "" {
			keys = append(keys, strings.Split(v, ",")...)
		}
	}
	found, err := f.ad.GetAds(r.Context(), &demopb.AdRequest{ContextKeys: keys})
	if err != nil {
		return nil, err
	}
	list := []adJSON{}
	for _, a := range found.Ads {
		list = append(list, adJSON{a.RedirectUrl, a.Text})
	}
	return list, nil
}

func (f *frontend) currencies(r *http.Request) (any, error) {
	list, err := f.currency.GetSupportedCurrencies(r.Context(), &demopb.Empty{})
	return list.GetCurrencyCodes(), err
}

func (f *frontend) shippingCost(r *http.Request) (any, error) {
	var items []itemJSON
	var to addressJSON
	if json.Unmarshal([]byte(r.FormValue("itemList")), &items) != nil ||
		r.FormValue("address") != "" && json.Unmarshal([]byte(r.FormValue("address")), &to) != nil {
		return nil, badRequest("itemList and address must be JSON")
	}
	list := make([]*demopb.CartItem, len(items))
	for i, item := range items {
		list[i] = &demopb.CartItem{ProductId: item.ProductID, Quantity: item.Quantity}
	}
	var quote struct {
		Cost amount `json:"cost_usd"`
	}
	err := call(r.Context(), f.client, f.shippingAddress+"/get-quote", parcelOf(list, to.message()), &quote)
	if err != nil {
		return nil, err
	}
	m, err := f.convert(r.Context(), &demopb.Money{
		CurrencyCode: quote.Cost.CurrencyCode, Units: quote.Cost.Units, Nanos: quote.Cost.Nanos,
	}, currencyOf(r))
	if err != nil {
		return nil, err
	}
	return moneyOf(m), nil
}
