package astronomy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	accountingCost = 300 * time.Microsecond
	fraudCost      = 100 * time.Microsecond
	// fraudDelay is how long fraud-detection thinks about an order with kafkaQueueProblems.
	fraudDelay = time.Second
)

// accountingMain is the program accounting: it keeps orders in PostgreSQL.
func accountingMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "accounting")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := openDatabase(ctx, s)
	if err != nil {
		return s.Fatal(ctx, "cannot reach the database", err)
	}
	defer db.close()
	a := &accounting{s: s, db: db}
	s.Recall(a.recall)
	s.Log.Info("accounting service started")
	return consume(ctx, s, "accounting", kgo.NewOffset().AtStart(), a.keep)
}

type accounting struct {
	s  *service.Service
	db *database
}

// keep writes an order to the database.
func (a *accounting) keep(ctx context.Context, r *kgo.Record) {
	ctx, span := received(ctx, a.s, r)
	order := &demopb.OrderResult{}
	err := proto.Unmarshal(r.Value, order)
	if err == nil {
		if err = a.s.Env.CPU.Use(ctx, accountingCost); err == nil {
			err = a.db.query(ctx, "INSERT accounting", func(ctx context.Context, c *pgx.Conn) error {
				return insertOrder(ctx, c, order)
			})
		}
	}
	service.EndSpan(span, err)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.s.Log.ErrorContext(ctx, "Order parsing failed", slog.String("order", order.OrderId), slog.Any("error", err))
		return
	}
	logKept(a.s.Log, time.Now(), order)
}

// logKept logs an order at a time, from one place for all times.
func logKept(log *slog.Logger, at time.Time, o *demopb.OrderResult) {
	service.LogAt(log, slog.LevelInfo, at, "Order details", "orderId", o.OrderId, "shippingTrackingId",
		o.ShippingTrackingId, "items", len(o.Items))
}

// received begins the span of an order that came.
func received(ctx context.Context, s *service.Service, r *kgo.Record) (context.Context, trace.Span) {
	return s.Span(ctx, ordersTopic+" process", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "kafka"), attribute.String("messaging.destination.name", ordersTopic),
		attribute.Int64("messaging.kafka.message.offset", r.Offset)))
}

// The statements by which an order is kept.
const (
	insertIntoOrder = `INSERT INTO accounting."order" (order_id) VALUES ($1)`
	insertIntoItems = `INSERT INTO accounting.orderitem (item_cost_currency_code, item_cost_units, item_cost_nanos, ` +
		`product_id, quantity, order_id) VALUES ($1, $2, $3, $4, $5, $6)`
	insertIntoShipping = `INSERT INTO accounting.shipping (shipping_tracking_id, shipping_cost_currency_code, ` +
		`shipping_cost_units, shipping_cost_nanos, street_address, city, state, country, zip_code, order_id) ` +
		`VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
)

// insertOrder writes an order, its items and its shipping, or nothing of it.
func insertOrder(ctx context.Context, c *pgx.Conn, o *demopb.OrderResult) (err error) {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(ctx) // What went wrong before is the error.
		}
	}()
	if _, err = tx.Exec(ctx, insertIntoOrder, o.OrderId); err != nil {
		return fmt.Errorf("insert into order: %w", err)
	}
	for _, i := range o.Items {
		_, err = tx.Exec(ctx, insertIntoItems, i.GetCost().GetCurrencyCode(), i.GetCost().GetUnits(),
			i.GetCost().GetNanos(), i.GetItem().GetProductId(), i.GetItem().GetQuantity(), o.OrderId)
		if err != nil {
			return fmt.Errorf("insert into orderitem: %w", err)
		}
	}
	to, cost := o.GetShippingAddress(), o.GetShippingCost()
	_, err = tx.Exec(ctx, insertIntoShipping, o.ShippingTrackingId, cost.GetCurrencyCode(), cost.GetUnits(),
		cost.GetNanos(), to.GetStreetAddress(), to.GetCity(), to.GetState(), to.GetCountry(), to.GetZipCode(),
		o.OrderId)
	if err != nil {
		return fmt.Errorf("insert into shipping: %w", err)
	}
	return tx.Commit(ctx)
}

// fraudMain is the program fraud-detection: it looks at every order, and counts.
func fraudMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "fraud-detection")
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := openFlags(ctx, s)
	if err != nil {
		return s.Fatal(ctx, "cannot reach the feature flags", err)
	}
	defer f.close()
	total := 0
	return consume(ctx, s, "fraud-detection", kgo.NewOffset().AtEnd(), func(ctx context.Context, r *kgo.Record) {
		ctx, span := received(ctx, s, r)
		defer span.End()
		if s.Env.CPU.Use(ctx, fraudCost) != nil {
			return
		}
		order := &demopb.OrderResult{}
		if err := proto.Unmarshal(r.Value, order); err != nil {
			s.Log.ErrorContext(ctx, "an order cannot be read", slog.Any("error", err))
			return
		}
		total++
		if f.number(ctx, kafkaQueueProblems) > 0 {
			s.Log.InfoContext(ctx, "FeatureFlag 'kafkaQueueProblems' is enabled, sleeping 1 second")
			select {
			case <-time.After(fraudDelay):
			case <-ctx.Done():
				return
			}
		}
		s.Log.InfoContext(ctx, "Consumed record", slog.String("orderId", order.OrderId),
			slog.Int("updatedTotalCount", total))
	})
}
