package sockshop

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	taskCost = 2 * time.Millisecond
	// atOnce is how many shipments are in its hands.
	atOnce = 10
)

var queueMasterPart = part{
	name: "queue-master", flavour: java, port: 80, memory: 160 << 20, size: 178 << 20, tags: `0\.3\.1`,
	start: startQueueMaster,
}

// queueMaster takes shipments out of the queue.
type queueMaster struct {
	s         *server
	consuming atomic.Bool
}

func startQueueMaster(ctx context.Context, s *server) error {
	m := &queueMaster{s: s}
	done := make(chan struct{})
	go func() { defer close(done); m.run(ctx) }()
	s.OnClose(func(context.Context) error { <-done; return nil })
	s.well("queue-master-rabbitmq", func(context.Context) error {
		if !m.consuming.Load() {
			return errors.New("there is no connection to the queue")
		}
		return nil
	})
	s.mux.Handle("GET /prometheus", s.Metrics())
	return nil
}

// run consumes until the service ends, on one connection after the other.
func (m *queueMaster) run(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		err := m.consume(ctx, func() { failing = false })
		m.consuming.Store(false)
		if ctx.Err() != nil {
			return
		}
		if !failing {
			m.s.Log.Error("Consumer raised exception, processing can restart if the connection factory supports it",
				slog.Any("error", err))
		}
		failing = true
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
}

func (m *queueMaster) consume(ctx context.Context, started func()) error {
	conn, ch, err := connect(ctx, m.s)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ch.Qos(atOnce, 0, false); err != nil {
		return err
	}
	tasks, err := ch.ConsumeWithContext(ctx, taskQueue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	started()
	m.consuming.Store(true)
	m.s.Log.Info("Waiting for shipments", slog.String("queue", taskQueue))
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d, ok := <-tasks:
			if !ok {
				return errors.New("the broker has closed the connection")
			}
			if err := m.handle(ctx, d); err != nil {
				return err
			}
		}
	}
}

// handle takes note of a shipment. The original would start a container for it, which it cannot in a plain pod.
func (m *queueMaster) handle(ctx context.Context, d amqp.Delivery) error {
	ctx, span := m.s.Span(m.s.Extract(ctx, carrier(d.Headers)), "rabbitmq receive "+taskQueue)
	defer span.End()
	if err := m.s.Env.CPU.Use(ctx, taskCost); err != nil {
		return err
	}
	var one shipment
	if err := json.Unmarshal(d.Body, &one); err != nil || one.Name == "" {
		m.s.Log.ErrorContext(ctx, "Dropped a message that is no shipment", slog.Any("error", err))
		return d.Reject(false)
	}
	m.s.Log.InfoContext(ctx, "Received shipment task: "+one.Name, slog.String("id", one.ID))
	return d.Ack(false)
}
