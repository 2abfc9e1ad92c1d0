package trainticket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// atOnce is how many mails a notification service has in its hands.
const atOnce = 20

// notificationPart sends mails: it keeps them, where their receivers find them.
var notificationPart = part{"ts-notification-service", "ts", empty("mails"), serveNotification}

func serveNotification(ctx context.Context, s *server) error {
	const base = "/api/v1/notifyservice/notification"
	if _, err := amqp.ParseURI(s.Env.Getenv("RABBITMQ_ADDRESS")); err != nil {
		return errNoBroker
	}
	n := &notification{s}
	s.Recall(n.recall)
	done := make(chan struct{})
	go func() { defer close(done); n.run(ctx) }()
	s.OnClose(func(context.Context) error { <-done; return nil })
	handle(s, "GET "+base+"/order/{id}", base+"/order", func(r *http.Request, _ struct{}) (mail, error) {
		id := r.PathValue("id")
		m, err := findOne[mail](r.Context(), s, "mails", bson.M{"_id": id}, fmt.Sprintf("mail about order %q", id))
		if err == nil {
			err = own(r, m.AccountID)
		}
		return m, err
	})
	return nil
}

type notification struct{ s *server }

// run consumes mails until the service ends, on one connection after the other.
func (n *notification) run(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		err := n.consume(ctx, func() {
			failing = false
			n.s.Log.Info("Waiting for mails", slog.String("queue", emailQueue))
		})
		if ctx.Err() != nil {
			return
		}
		if !failing {
			n.s.Log.Error("Lost the queue, try again", slog.String("queue", emailQueue), slog.Any("error", err))
		}
		failing = true
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
}

func (n *notification) consume(ctx context.Context, started func()) error {
	conn, ch, err := connect(ctx, n.s)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ch.Qos(atOnce, 0, false); err != nil {
		return err
	}
	mails, err := ch.ConsumeWithContext(ctx, emailQueue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	started()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d, ok := <-mails:
			if !ok {
				return errors.New("the broker has closed the connection")
			}
			if err := n.deliver(ctx, d); err != nil {
				return err
			}
		}
	}
}

// deliver keeps a mail. One that cannot be kept is given back to the queue.
func (n *notification) deliver(ctx context.Context, d amqp.Delivery) error {
	ctx, span := n.s.Span(n.s.Extract(ctx, tableCarrier(d.Headers)), "rabbitmq receive "+emailQueue)
	defer span.End()
	if err := n.s.Env.CPU.Use(ctx, cost); err != nil {
		return err
	}
	var m mail
	if err := json.Unmarshal(d.Body, &m); err != nil || m.OrderNumber == "" {
		n.s.Log.ErrorContext(ctx, "Dropped a message that is no mail", slog.Any("error", err))
		return d.Reject(false)
	}
	if err := insert(ctx, n.s, "mails", m, func() error { return nil }); err != nil {
		n.s.Log.ErrorContext(ctx, "Failed to keep mail, it goes back to the queue", slog.String("order", m.OrderNumber),
			slog.Any("error", err))
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
		return d.Nack(false, true)
	}
	n.s.Log.InfoContext(ctx, "Mail sent", slog.String("order", m.OrderNumber), slog.String("to", m.Email))
	return d.Ack(false)
}
