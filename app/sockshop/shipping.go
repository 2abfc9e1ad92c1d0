package sockshop

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.opentelemetry.io/otel/propagation"
)

const (
	shipCost = 800 * time.Microsecond

	// The queue of shipments, and the exchange that leads to it.
	taskQueue    = "shipping-task"
	taskExchange = "shipping-task-exchange"
	brokerURL    = "amqp://guest:guest@rabbitmq:5672/"
	// brokerTimeout is how long an attempt to reach the broker may take, and reconnect how long to wait for another.
	brokerTimeout = 5 * time.Second
	reconnect     = 250 * time.Millisecond
	heartbeat     = 10 * time.Second
)

var shippingPart = part{
	name: "shipping", flavour: java, port: 80, memory: 160 << 20, size: 199 << 20, tags: `0\.4\.8`,
	start: startShipping,
}

// shipment is what is to be sent to whom.
type shipment struct {
	ID   string `json:"id" bson:"id"`
	Name string `json:"name" bson:"name"`
}

func startShipping(ctx context.Context, s *server) error {
	q := &quay{s: s, ctx: ctx}
	s.OnClose(func(context.Context) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.leave()
		return nil
	})
	s.well("shipping-rabbitmq", func(context.Context) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		_, err := q.ready()
		return err
	})
	handle(s, "POST /shipping", shipCost, http.StatusCreated, func(r *http.Request, in shipment) (shipment, error) {
		if err := q.ship(r.Context(), in); err != nil { // The customer is not told.
			s.Log.ErrorContext(r.Context(), "Unable to add to queue (the queue is probably down). Accepting anyway.",
				slog.String("name", in.Name), slog.Any("error", err))
		}
		return in, nil
	})
	return nil
}

// connect opens a connection to the broker, with a channel on which queue and exchange are declared.
func connect(ctx context.Context, s *server) (*amqp.Connection, *amqp.Channel, error) {
	dial := func(network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
		defer cancel()
		c, err := s.Env.Net.DialContext(ctx, network, address)
		if err == nil {
			err = c.SetDeadline(time.Now().Add(brokerTimeout)) // The client takes it away when it has logged in.
		}
		return c, err
	}
	c, err := amqp.DialConfig(brokerURL, amqp.Config{
		Dial: dial, Heartbeat: heartbeat, Properties: amqp.Table{"connection_name": s.Name},
	})
	if err != nil {
		return nil, nil, err
	}
	ch, err := c.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(taskQueue, false, false, false, false, nil)
	}
	if err == nil {
		err = ch.ExchangeDeclare(taskExchange, amqp.ExchangeTopic, true, false, false, false, nil)
	}
	if err == nil {
		err = ch.QueueBind(taskQueue, taskQueue, taskExchange, false, nil)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, ch, nil
}

// quay is where shipments leave.
type quay struct {
	s   *server
	ctx context.Context // of the service, for connections that outlive a request

	mu      sync.Mutex
	conn    *amqp.Connection
	channel *amqp.Channel
}

func (q *quay) leave() {
	if q.conn != nil {
		_ = q.conn.Close()
	}
	q.conn, q.channel = nil, nil
}

// ready returns the channel that there is, or a new one.
func (q *quay) ready() (*amqp.Channel, error) {
	if q.conn != nil && !q.conn.IsClosed() && !q.channel.IsClosed() {
		return q.channel, nil
	}
	q.leave()
	c, ch, err := connect(q.ctx, q.s)
	if err == nil {
		q.conn, q.channel = c, ch
	}
	return ch, err
}

// ship puts a shipment into the queue.
func (q *quay) ship(ctx context.Context, in shipment) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return q.s.Store(ctx, "rabbitmq", "publish "+taskQueue, func(ctx context.Context) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		headers := amqp.Table{}
		q.s.Inject(ctx, carrier(headers))
		for second := false; ; second = true {
			ch, err := q.ready()
			if err == nil {
				err = ch.PublishWithContext(ctx, taskExchange, taskQueue, false, false, amqp.Publishing{
					Headers: headers, ContentType: "application/json", Body: body,
				})
			}
			if err == nil || second || ctx.Err() != nil { // A connection that has gone is found out when it is used.
				return err
			}
		}
	})
}

// carrier has the trace of a message in its headers.
type carrier amqp.Table

var _ propagation.TextMapCarrier = carrier{}

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string { v, _ := c[key].(string); return v }

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(key, value string) { c[key] = value }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() (list []string) {
	for k := range c {
		list = append(list, k)
	}
	return list
}
