package astronomy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/prometheus/client_golang/prometheus"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
)

const (
	cartCost  = 150 * time.Microsecond
	cartField = "cart"           // of the hash that a user's cart is
	cartLife  = 60 * time.Minute // after the last write
	// badStore is where the cart looks for its store with cartFailure.
	badStore = "badhost:1234"
	// maxItem is how many pieces of a product a cart can have.
	maxItem = 1 << 20
)

// cartPart is the service cart: what people are about to buy, in Valkey.
var cartPart = part{
	name: "cart", port: "CART_PORT", costs: service.Costs{"": cartCost},
	start: func(_ context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
		address := s.Env.Getenv("VALKEY_ADDR")
		if address == "" {
			return nil, errors.New("VALKEY_ADDR is not set: want the address of a store, such as valkey-cart:6379")
		}
		latency := func(name, help string) prometheus.Histogram {
			h := prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
			})
			s.Registerer().MustRegister(h)
			return h
		}
		c := &cart{
			s: s, flags: f, store: s.Redis(address), bad: s.Redis(badStore),
			added: latency("app_cart_add_item_latency_seconds", "How long it took to put something into a cart."),
			got:   latency("app_cart_get_cart_latency_seconds", "How long it took to read a cart."),
		}
		s.Well = func(ctx context.Context) bool { return !f.on(ctx, failedReadinessProbe) }
		s.Recall(c.recall)
		return func(srv *grpc.Server) { demopb.RegisterCartServiceServer(srv, c) }, nil
	},
}

type cart struct {
	demopb.UnimplementedCartServiceServer
	s          *service.Service
	flags      *flags
	store, bad *service.Redis
	added, got prometheus.Histogram
}

// AddItem puts a product into a cart, beside what is there of it.
func (c *cart) AddItem(ctx context.Context, req *demopb.AddItemRequest) (*demopb.Empty, error) {
	defer since(c.added, time.Now())
	item := req.GetItem()
	if req.UserId == "" || item.GetProductId() == "" || item.Quantity < 1 || item.Quantity > maxItem {
		return nil, status.Error(codes.InvalidArgument, "want a user, a product and how many of it")
	}
	all, err := c.read(ctx, req.UserId)
	if err != nil {
		return nil, c.failed(ctx, "AddItem", err)
	}
	for _, i := range all.Items {
		if i.ProductId == item.ProductId {
			i.Quantity = min(i.Quantity+item.Quantity, maxItem)
			item = nil
			break
		}
	}
	if item != nil {
		all.Items = append(all.Items, item)
	}
	if err := c.write(ctx, c.store, all); err != nil {
		return nil, c.failed(ctx, "AddItem", err)
	}
	return &demopb.Empty{}, nil
}

// GetCart returns a cart, an empty one for who has none.
func (c *cart) GetCart(ctx context.Context, req *demopb.GetCartRequest) (*demopb.Cart, error) {
	defer since(c.got, time.Now())
	all, err := c.read(ctx, req.UserId)
	if err != nil {
		return nil, c.failed(ctx, "GetCart", err)
	}
	return all, nil
}

// EmptyCart takes everything out of a cart. With cartFailure it looks for the store in a wrong place.
func (c *cart) EmptyCart(ctx context.Context, req *demopb.EmptyCartRequest) (*demopb.Empty, error) {
	store := c.store
	if c.flags.on(ctx, cartFailure) {
		store = c.bad
	}
	if err := c.write(ctx, store, &demopb.Cart{UserId: req.UserId}); err != nil {
		return nil, c.failed(ctx, "EmptyCart", err)
	}
	return &demopb.Empty{}, nil
}

func (c *cart) read(ctx context.Context, user string) (*demopb.Cart, error) {
	all := &demopb.Cart{UserId: user}
	err := c.s.Store(ctx, "redis", "HGET", func(ctx context.Context) error {
		data, err := redis.Bytes(c.store.Do(ctx, service.Command{"HGET", user, cartField}))
		if errors.Is(err, redis.ErrNil) {
			return nil
		}
		if err != nil {
			return err
		}
		return proto.Unmarshal(data, all)
	})
	return all, err
}

func (c *cart) write(ctx context.Context, store *service.Redis, all *demopb.Cart) error {
	data, err := proto.Marshal(all)
	if err != nil {
		return err
	}
	return c.s.Store(ctx, "redis", "HSET", func(ctx context.Context) error {
		_, err := store.Do(ctx, service.Command{"HSET", all.UserId, cartField, data},
			service.Command{"EXPIRE", all.UserId, int(cartLife.Seconds())})
		return err
	})
}

// failed is the error of a call whose store does not answer.
func (c *cart) failed(ctx context.Context, method string, err error) error {
	err = status.Error(codes.FailedPrecondition, fmt.Sprintf("Can't access cart storage. %v", err))
	c.s.Log.ErrorContext(ctx, method+": cart storage is not accessible", slog.Any("error", err))
	trace.SpanFromContext(ctx).SetStatus(otelcodes.Error, err.Error())
	return err
}

// since observes the time from a start.
func since(h prometheus.Observer, start time.Time) { h.Observe(time.Since(start).Seconds()) }
