package astronomy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
)

// questions are what only the services can answer: with what the data they start with says.
var questions = map[string]ask.Question{
	"frontend-proxy": ask.All(aBook, aPicture("/images/products/")),
	// The frontend knows no pictures. Who sends on what it is asked for does.
	"frontend": ask.All(aBook, ask.Page("/images/products/TheComet.jpg", func(status int, body []byte) error {
		if status != http.StatusNotFound {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	})),
	"image-provider": aPicture("/products/"),
	"grafana": ask.Page("/api/datasources/uid/webstore-traces", func(status int, body []byte) error {
		if status != http.StatusOK || !strings.Contains(string(body), `"name":"Jaeger"`) {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}),
	"ad": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := demopb.NewAdServiceClient(c).GetAds(ctx, &demopb.AdRequest{ContextKeys: []string{"binoculars"}})
		if err == nil && (len(r.Ads) != 1 || r.Ads[0].RedirectUrl != "/product/2ZYFJ3GM2N") {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"cart": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := demopb.NewCartServiceClient(c).GetCart(ctx, &demopb.GetCartRequest{UserId: "nobody"})
		if err == nil && (r.UserId != "nobody" || len(r.Items) > 0) {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	// To ask more of them would be to buy something.
	"checkout": serves("oteldemo.CheckoutService"),
	"payment":  serves("oteldemo.PaymentService"),
	"currency": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := demopb.NewCurrencyServiceClient(c).Convert(ctx, &demopb.CurrencyConversionRequest{
			From: &demopb.Money{CurrencyCode: "EUR", Units: 100, Nanos: 80_000_000}, ToCode: "USD",
		})
		if err == nil && (r.CurrencyCode != "USD" || r.Units != 113 || r.Nanos != 140_440_000) {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"product-catalog": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := demopb.NewProductCatalogServiceClient(c).GetProduct(ctx, &demopb.GetProductRequest{Id: "HQTGWGPNH4"})
		if err == nil && r.Name != "The Comet Book" {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"recommendation": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := demopb.NewRecommendationServiceClient(c).ListRecommendations(ctx,
			&demopb.ListRecommendationsRequest{ProductIds: []string{"HQTGWGPNH4"}})
		if err != nil {
			return err
		}
		for _, id := range r.ProductIds {
			if id == "HQTGWGPNH4" || !slices.ContainsFunc(products, func(p product) bool { return p.id == id }) {
				return ask.Wrong("%v", r)
			}
		}
		if len(r.ProductIds) != maxRecommendations {
			return ask.Wrong("%v", r)
		}
		return nil
	}),
	"shipping": ask.Post("/get-quote", `{"items": [{"product_id": "HQTGWGPNH4", "quantity": 3}]}`,
		exactly(`{"cost_usd":{"currency_code":"USD","units":26,"nanos":970000000}}`)),
	"product-reviews": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := demopb.NewProductReviewServiceClient(c).GetAverageProductReviewScore(ctx,
			&demopb.GetAverageProductReviewScoreRequest{ProductId: "6E92ZMYYFZ"})
		if err == nil && r.AverageScore != "4.3" {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"llm": ask.Post("/v1/chat/completions",
		`{"model": "astronomy-llm", "messages": [
			{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "fetch_product_reviews"}}]},
			{"role": "tool", "tool_call_id": "1", "content": "[{\"score\": \"3.5\"}]"}]}`,
		func(status int, body []byte) error {
			if status != http.StatusOK || !bytes.Contains(body, []byte("1 buyers give it 3.5 of 5")) {
				return ask.Wrong("%d %s", status, body)
			}
			return nil
		}),
	"quote": ask.Post("/getquote", `{"numberOfItems": 3}`, exactly("26.97")),
	"email": ask.Post("/send_order_confirmation", "{}", func(status int, body []byte) error {
		if status != http.StatusBadRequest || !strings.Contains(string(body), "want the email address and the order") {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}),
	"load-generator": ask.Page("/stats/requests", func(status int, body []byte) error {
		var r struct {
			State string `json:"state"`
			Users int    `json:"user_count"`
		}
		if status != http.StatusOK || json.Unmarshal(body, &r) != nil || r.State != "running" || r.Users == 0 {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}),
	"flagd": ask.Post("/flagd.evaluation.v1.Service/ResolveFloat", `{"flagKey": "paymentFailure", "context": {}}`,
		func(status int, body []byte) error {
			var r struct{ Reason, Variant string }
			if status != http.StatusOK || json.Unmarshal(body, &r) != nil || r.Reason != "STATIC" || r.Variant == "" {
				return ask.Wrong("%d %s", status, body)
			}
			return nil
		}),
	"kafka":      theTopic,
	"postgresql": theProducts,
	"jaeger":     ask.Jaeger("frontend"),
	"otel-collector": ask.Page("/metrics", func(status int, body []byte) error {
		if status != http.StatusOK || !strings.Contains(string(body), "otelcol_receiver_accepted_spans_total{") {
			return ask.Wrong("%d, %d bytes without spans", status, len(body))
		}
		return nil
	}),
}

// aBook is a question for what the shop sells.
var aBook = ask.Page("/api/products/HQTGWGPNH4", func(status int, body []byte) error {
	var p productJSON
	if status != http.StatusOK || json.Unmarshal(body, &p) != nil || p.Name != "The Comet Book" ||
		p.PriceUSD != (moneyJSON{dollars, 0, 990_000_000}) {
		return ask.Wrong("%d %s", status, body)
	}
	return nil
})

// aPicture is a question for the picture of a product.
func aPicture(under string) ask.Question {
	return ask.Page(under+"RoofBinoculars.jpg", func(status int, body []byte) error {
		if status != http.StatusOK || !strings.Contains(string(body), "RoofBinoculars") {
			return ask.Wrong("%d, %d bytes that are not the picture", status, len(body))
		}
		return nil
	})
}

// serves is the question whether a gRPC server has a service.
func serves(name string) ask.Question {
	return ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error { return ask.Serves(ctx, c, name) })
}

// exactly wants one answer.
func exactly(answer string) func(int, []byte) error {
	return func(status int, body []byte) error {
		if status != http.StatusOK || strings.TrimSpace(string(body)) != answer {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}
}

// theTopic asks Kafka for the topic of orders. Whatever brokers say of where they are, they are asked at one address.
func theTopic(ctx context.Context, dial ask.Dial, address string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RequestRetries(0), kgo.ClientID("ask"),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, address)
		}))
	if err != nil {
		return err
	}
	defer client.Close()
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(ordersTopic)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 {
		return ask.Wrong("with %d topics", len(resp.Topics))
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return fmt.Errorf("topic %s: %w", ordersTopic, err)
	}
	return nil
}

// theProducts asks PostgreSQL how many products there are.
func theProducts(ctx context.Context, dial ask.Dial, address string) error {
	cfg, err := pgx.ParseConfig("postgres://otelu:otelp@" + address + "/otel?sslmode=disable")
	if err != nil {
		return err
	}
	cfg.DialFunc = dial
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	n := 0
	if err := conn.QueryRow(ctx, "SELECT COUNT(*) FROM catalog.products").Scan(&n); err != nil {
		return err
	}
	if n < len(products) {
		return ask.Wrong("that there are %d products", n)
	}
	return nil
}
