package astronomy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	checkoutCost = 300 * time.Microsecond
	// badPayment is where checkout looks for payment with paymentUnreachable.
	badPayment = "badAddress:50051"
)

// checkoutMain is the program checkout: it makes orders of carts.
func checkoutMain(ctx context.Context, env *kit.Env) error {
	c := &checkout{}
	defer c.close()
	return part{
		name: "checkout", port: "CHECKOUT_PORT", costs: service.Costs{"": checkoutCost},
		start: func(_ context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
			return func(srv *grpc.Server) { demopb.RegisterCheckoutServiceServer(srv, c) }, c.open(s, f)
		},
	}.main(ctx, env)
}

type checkout struct {
	demopb.UnimplementedCheckoutServiceServer
	s                    *service.Service
	flags                *flags
	cart                 demopb.CartServiceClient
	catalog              demopb.ProductCatalogServiceClient
	currency             demopb.CurrencyServiceClient
	payment, unreachable demopb.PaymentServiceClient
	client               *http.Client
	shipping, email      string
	orders               *kgo.Client // nil without Kafka
}

// open connects to everybody.
func (c *checkout) open(s *service.Service, f *flags) error {
	c.s, c.flags, c.client = s, f, s.HTTPClient(callTimeout)
	conns := map[string]*grpc.ClientConn{}
	for _, variable := range []string{"CART_ADDR", "PRODUCT_CATALOG_ADDR", "CURRENCY_ADDR", "PAYMENT_ADDR"} {
		var err error
		if conns[variable], err = dial(s, variable); err != nil {
			return err
		}
	}
	nowhere, err := s.DialGRPC("passthrough:///"+badPayment, callTimeout)
	if err != nil {
		return err
	}
	c.cart = demopb.NewCartServiceClient(conns["CART_ADDR"])
	c.catalog = demopb.NewProductCatalogServiceClient(conns["PRODUCT_CATALOG_ADDR"])
	c.currency = demopb.NewCurrencyServiceClient(conns["CURRENCY_ADDR"])
	c.payment = demopb.NewPaymentServiceClient(conns["PAYMENT_ADDR"])
	c.unreachable = demopb.NewPaymentServiceClient(nowhere)
	c.shipping, c.email = s.Env.Getenv("SHIPPING_ADDR"), s.Env.Getenv("EMAIL_ADDR")
	if c.shipping == "" || c.email == "" {
		return fmt.Errorf("SHIPPING_ADDR and EMAIL_ADDR must be set, as http://shipping:8080")
	}
	if s.Env.Getenv("KAFKA_ADDR") == "" {
		return nil
	}
	c.orders, err = openKafka(s, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite(),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(maxWaiting),
		kgo.RecordDeliveryTimeout(time.Minute))
	return err
}

func (c *checkout) close() {
	if c.orders != nil {
		c.orders.Close()
	}
}

// PlaceOrder makes an order of a user's cart.
func (c *checkout) PlaceOrder(ctx context.Context, req *demopb.PlaceOrderRequest) (*demopb.PlaceOrderResponse, error) {
	id := orderID(time.Now(), c.s.Env.Hostname, uint16(rand.Uint32())).String()
	order, err := c.prepare(ctx, req)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	order.OrderId = id
	due := order.ShippingCost
	for _, i := range order.Items {
		due = sum(due, times(i.Cost, i.Item.Quantity))
	}
	charged, err := c.charge(ctx, due, req.CreditCard)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "failed to charge card: could not charge the card: %v", err)
	}
	c.s.Log.InfoContext(ctx, "payment went through", slog.String("transaction_id", charged.TransactionId))
	if order.ShippingTrackingId, err = c.ship(ctx, order); err != nil {
		return nil, status.Errorf(codes.Unavailable, "shipping error: %v", err)
	}
	_, _ = c.cart.EmptyCart(ctx, &demopb.EmptyCartRequest{UserId: req.UserId}) // The order stands in any case.
	trace.SpanFromContext(ctx).SetAttributes(attribute.String("app.order.id", id),
		attribute.Int("app.order.items.count", len(order.Items)))
	if err := c.confirm(ctx, req.Email, order); err != nil {
		c.s.Log.WarnContext(ctx, "failed to send order confirmation", slog.String("to", req.Email),
			slog.Any("error", err))
	}
	c.publish(ctx, order)
	c.s.Log.InfoContext(ctx, "order placed", slog.String("app.order.id", id),
		slog.String("app.order.amount", fmt.Sprintf("%d.%02d %s", due.Units, due.Nanos/1e7, due.CurrencyCode)))
	return &demopb.PlaceOrderResponse{Order: order}, nil
}

// prepare finds out what a cart costs, with its shipping, in the user's currency.
func (c *checkout) prepare(ctx context.Context, req *demopb.PlaceOrderRequest) (*demopb.OrderResult, error) {
	all, err := c.cart.GetCart(ctx, &demopb.GetCartRequest{UserId: req.UserId})
	if err != nil {
		return nil, fmt.Errorf("cart failure: failed to get user cart during checkout: %w", err)
	}
	order := &demopb.OrderResult{ShippingAddress: req.Address}
	for _, item := range all.Items {
		p, err := c.catalog.GetProduct(ctx, &demopb.GetProductRequest{Id: item.ProductId})
		if err != nil {
			return nil, fmt.Errorf("failed to prepare order: failed to get product #%q: %w", item.ProductId, err)
		}
		cost, err := c.convert(ctx, p.PriceUsd, req.UserCurrency)
		if err != nil {
			return nil, fmt.Errorf("failed to convert price of %q to %s: %w", item.ProductId, req.UserCurrency, err)
		}
		order.Items = append(order.Items, &demopb.OrderItem{Item: item, Cost: cost})
	}
	var quote struct {
		Cost amount `json:"cost_usd"`
	}
	if err := call(ctx, c.client, c.shipping+"/get-quote", parcelOf(all.Items, req.Address), &quote); err != nil {
		return nil, fmt.Errorf("shipping quote failure: %w", err)
	}
	order.ShippingCost, err = c.convert(ctx, &demopb.Money{
		CurrencyCode: quote.Cost.CurrencyCode, Units: quote.Cost.Units, Nanos: quote.Cost.Nanos,
	}, req.UserCurrency)
	if err != nil {
		return nil, fmt.Errorf("failed to convert shipping cost to currency: %w", err)
	}
	return order, nil
}

func (c *checkout) convert(ctx context.Context, m *demopb.Money, to string) (*demopb.Money, error) {
	return c.currency.Convert(ctx, &demopb.CurrencyConversionRequest{From: m, ToCode: to})
}

// charge charges a card. With paymentUnreachable it looks for payment in a wrong place.
func (c *checkout) charge(ctx context.Context, due *demopb.Money,
	card *demopb.CreditCardInfo,
) (*demopb.ChargeResponse, error) {
	payment := c.payment
	if c.flags.on(ctx, paymentUnreachable) {
		payment = c.unreachable
	}
	return payment.Charge(ctx, &demopb.ChargeRequest{Amount: due, CreditCard: card})
}

// parcelOf is what shipping is told.
func parcelOf(items []*demopb.CartItem, to *demopb.Address) map[string]any {
	list := make([]map[string]any, len(items))
	for i, item := range items {
		list[i] = map[string]any{"product_id": item.ProductId, "quantity": item.Quantity}
	}
	return map[string]any{"items": list, "address": map[string]string{
		"street_address": to.GetStreetAddress(), "city": to.GetCity(), "state": to.GetState(),
		"country": to.GetCountry(), "zip_code": to.GetZipCode(),
	}}
}

func (c *checkout) ship(ctx context.Context, order *demopb.OrderResult) (string, error) {
	items := make([]*demopb.CartItem, len(order.Items))
	for i, o := range order.Items {
		items[i] = o.Item
	}
	var shipped struct {
		ID string `json:"tracking_id"`
	}
	err := call(ctx, c.client, c.shipping+"/ship-order", parcelOf(items, order.ShippingAddress), &shipped)
	return shipped.ID, err
}

// snakeCase is how email wants an order.
var snakeCase = protojson.MarshalOptions{UseProtoNames: true}

func (c *checkout) confirm(ctx context.Context, to string, order *demopb.OrderResult) error {
	data, err := snakeCase.Marshal(order)
	if err != nil {
		return err
	}
	return call(ctx, c.client, c.email+"/send_order_confirmation",
		map[string]any{"email": to, "order": json.RawMessage(data)}, nil)
}

// publish sends an order to Kafka, without waiting for it. With kafkaQueueProblems it is sent many times more.
func (c *checkout) publish(ctx context.Context, order *demopb.OrderResult) {
	if c.orders == nil {
		return
	}
	value, err := proto.Marshal(order)
	if err != nil {
		c.s.Log.ErrorContext(ctx, "failed to marshal the order", slog.Any("error", err))
		return
	}
	copies := int(min(c.flags.number(ctx, kafkaQueueProblems), maxWaiting/2))
	if copies > 0 {
		c.s.Log.InfoContext(ctx, "FeatureFlag 'kafkaQueueProblems' is activated, overloading queue now.")
	}
	for range 1 + max(0, copies) {
		c.send(ctx, value)
	}
	if copies > 0 {
		c.s.Log.InfoContext(ctx, fmt.Sprintf("Done with #%d messages for overload simulation.", copies))
	}
}

// send sends a record. Whether Kafka has it is told to the log alone.
func (c *checkout) send(ctx context.Context, value []byte) {
	ctx, span := c.s.Span(ctx, ordersTopic+" publish", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("messaging.system", "kafka"), attribute.String("messaging.destination.name", ordersTopic)))
	r := &kgo.Record{Topic: ordersTopic, Value: value}
	c.s.Inject(ctx, recordHeaders{r})
	c.orders.TryProduce(context.WithoutCancel(ctx), r, func(_ *kgo.Record, err error) {
		service.EndSpan(span, err)
		if err != nil {
			c.s.Log.ErrorContext(ctx, "failed to write the order to Kafka", slog.Any("error", err))
		}
	})
}
