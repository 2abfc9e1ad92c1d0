package trainticket

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.opentelemetry.io/otel/propagation"
)

const (
	// emailQueue is where mails wait to be sent.
	emailQueue = "email"
	// postTimeout is how long a booking waits for the broker, and reconnect how long a service for another attempt.
	postTimeout = 2 * time.Second
	reconnect   = 250 * time.Millisecond
	// maxLate is how many mails may wait for a broker that is away.
	maxLate = 1000
	// heartbeat is how often broker and service show each other that they are there.
	heartbeat = 10 * time.Second
)

// connect opens a connection to the broker, with a channel on which the queue is declared.
func connect(ctx context.Context, s *server) (*amqp.Connection, *amqp.Channel, error) {
	dial := func(network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, postTimeout)
		defer cancel()
		c, err := s.Env.Net.DialContext(ctx, network, address)
		if err == nil {
			err = c.SetDeadline(time.Now().Add(postTimeout)) // The client takes it away when it has logged in.
		}
		return c, err
	}
	c, err := amqp.DialConfig(s.Env.Getenv("RABBITMQ_ADDRESS"), amqp.Config{
		Dial: dial, Heartbeat: heartbeat, Properties: amqp.Table{"connection_name": s.Name},
	})
	if err != nil {
		return nil, nil, err
	}
	ch, err := c.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(emailQueue, true, false, false, false, nil)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, ch, nil
}

// errNoBroker is what is wrong with a service that is not told where the broker is.
var errNoBroker = errors.New(
	"RABBITMQ_ADDRESS: want the address of a broker, such as amqp://user:password@rabbitmq:5672/")

// post takes mails to the broker.
type post struct {
	s   *server
	ctx context.Context // of the service, for connections that outlive a request

	mu      sync.Mutex
	conn    *amqp.Connection
	channel *amqp.Channel
	late    []mail
}

// openPost begins to take mails. It waits for no broker: a booking is made without one, and its mail is sent later.
func openPost(ctx context.Context, s *server) (*post, error) {
	if _, err := amqp.ParseURI(s.Env.Getenv("RABBITMQ_ADDRESS")); err != nil {
		return nil, errNoBroker
	}
	p := &post{s: s, ctx: ctx}
	done := make(chan struct{})
	go func() { defer close(done); p.catchUp(ctx) }()
	s.OnClose(func(context.Context) error {
		<-done
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hangUp()
		return nil
	})
	return p, nil
}

func (p *post) hangUp() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	p.conn, p.channel = nil, nil
}

// send takes a mail to the broker, and waits until it has it. If it cannot be reached the mail waits here.
func (p *post) send(ctx context.Context, m mail) {
	if err := p.try(ctx, m); err != nil {
		p.s.Log.ErrorContext(ctx, "Failed to send mail to the queue", slog.String("order", m.OrderNumber),
			slog.Any("error", err))
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.late) < maxLate {
			p.late = append(p.late, m)
		}
	}
}

func (p *post) try(ctx context.Context, m mail) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postTimeout)
	defer cancel()
	return p.s.Store(ctx, "rabbitmq", "publish "+emailQueue, func(ctx context.Context) error {
		for second := false; ; second = true {
			waiting, err := p.publish(ctx, body)
			if err == nil {
				var ok bool
				if ok, err = waiting.WaitContext(ctx); err == nil && ok {
					return nil
				}
				if err == nil {
					err = errors.New("the broker did not take it")
				}
			}
			// A connection that has gone is found out when it is used.
			if second || ctx.Err() != nil {
				return err
			}
		}
	})
}

// publish sends a message on the connection that there is, or on a new one.
func (p *post) publish(ctx context.Context, body []byte) (*amqp.DeferredConfirmation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || p.conn.IsClosed() || p.channel.IsClosed() {
		p.hangUp()
		c, ch, err := connect(p.ctx, p.s)
		if err != nil {
			return nil, err
		}
		if err := ch.Confirm(false); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		p.conn, p.channel = c, ch
	}
	headers := amqp.Table{}
	p.s.Inject(ctx, tableCarrier(headers))
	return p.channel.PublishWithDeferredConfirmWithContext(ctx, "", emailQueue, true, false, amqp.Publishing{
		Headers: headers, ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body,
	})
}

// catchUp sends mails that had to wait.
func (p *post) catchUp(ctx context.Context) {
	t := time.NewTicker(4 * reconnect)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		p.mu.Lock()
		list := p.late
		p.late = nil
		p.mu.Unlock()
		for i, m := range list {
			if err := p.try(ctx, m); err != nil {
				p.mu.Lock()
				p.late = append(list[i:], p.late...)
				p.late = p.late[:min(len(p.late), maxLate)]
				p.mu.Unlock()
				break
			}
			p.s.Log.InfoContext(ctx, "Sent mail to the queue late", slog.String("order", m.OrderNumber))
		}
	}
}

// tableCarrier has the trace of a message in its headers.
type tableCarrier amqp.Table

var _ propagation.TextMapCarrier = tableCarrier{}

// Get implements propagation.TextMapCarrier.
func (c tableCarrier) Get(key string) string { v, _ := c[key].(string); return v }

// Set implements propagation.TextMapCarrier.
func (c tableCarrier) Set(key, value string) { c[key] = value }

// Keys implements propagation.TextMapCarrier.
func (c tableCarrier) Keys() (list []string) {
	for k := range c {
		list = append(list, k)
	}
	return list
}
