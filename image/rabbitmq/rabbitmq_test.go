package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long the broker may take to do something.
const patience = 30 * time.Second

// world is a broker, and somebody who uses it.
type world struct {
	t            *testing.T
	server, user *kittest.Machine
	run          *kittest.Run
	since        time.Time // of the broker's container, if it is older than the broker
}

func start(t *testing.T) *world {
	w := kittest.New(t)
	v := &world{t: t, server: w.Machine("rabbitmq", "10.244.0.2"), user: w.Machine("user", "10.244.0.3")}
	v.server.Install(Image(nil))
	v.boot()
	return v
}

func (w *world) boot() {
	w.t.Helper()
	env := w.server.Env("rabbitmq-server")
	env.Vars["RABBITMQ_DEFAULT_USER"], env.Vars["RABBITMQ_DEFAULT_PASS"] = "train", "secret"
	env.Started = w.since
	w.run = w.server.Run(Main, env)
	w.server.WaitListen(":5672")
}

func (w *world) stop() {
	w.t.Helper()
	w.run.Signal(syscall.SIGTERM)
	if code := w.run.Wait(); code != 0 {
		w.t.Fatalf("told to stop, it exits %d\n%s", code, w.run.Stdout)
	}
}

func (w *world) dial(user, password string) (*amqp.Connection, error) {
	net := func(_, address string) (net.Conn, error) {
		return w.user.Env("client").Net.DialContext(w.t.Context(), "tcp", address)
	}
	return amqp.DialConfig(fmt.Sprintf("amqp://%s:%s@rabbitmq:5672/", user, password),
		amqp.Config{Dial: net, Heartbeat: 10 * time.Second})
}

// connect opens a connection with a channel.
func (w *world) connect() (*amqp.Connection, *amqp.Channel) {
	w.t.Helper()
	c, err := w.dial("train", "secret")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c, w.channel(c)
}

func (w *world) channel(c *amqp.Connection) *amqp.Channel {
	w.t.Helper()
	ch, err := c.Channel()
	if err != nil {
		w.t.Fatal(err)
	}
	return ch
}

func (w *world) ctl(args ...string) string {
	w.t.Helper()
	run := w.server.Start(Ctl, append([]string{"rabbitmqctl"}, args...)...)
	if code := run.Wait(); code != 0 {
		w.t.Fatalf("rabbitmqctl %v exits %d: %s", args, code, run.Stderr)
	}
	return run.Stdout.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func declare(t *testing.T, ch *amqp.Channel, name string) {
	t.Helper()
	_, err := ch.QueueDeclare(name, true, false, false, false, nil)
	must(t, err)
}

func publish(t *testing.T, ch *amqp.Channel, exchange, key, body string) {
	t.Helper()
	must(t, ch.PublishWithContext(t.Context(), exchange, key, false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte(body), ContentType: "text/plain",
		Headers: amqp.Table{"n": int32(1), "list": []any{"a", amqp.Table{"b": true}}},
	}))
}

// receive takes the next delivery.
func receive(t *testing.T, in <-chan amqp.Delivery) amqp.Delivery {
	t.Helper()
	select {
	case d, ok := <-in:
		if !ok {
			t.Fatal("the consumer was closed")
		}
		return d
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
	return amqp.Delivery{}
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal(what)
		}
	}
}

func TestPublishAndConsume(t *testing.T) {
	w := start(t)
	_, ch := w.connect()
	declare(t, ch, "email")
	must(t, ch.Qos(1, 0, false))
	in, err := ch.Consume("email", "me", false, false, false, false, nil)
	must(t, err)
	large := strings.Repeat("x", 300<<10) // of several frames
	for _, body := range []string{"one", large, ""} {
		publish(t, ch, "", "email", body)
	}
	d := receive(t, in)
	if string(d.Body) != "one" || d.ContentType != "text/plain" || d.Headers["n"] != int32(1) || d.Redelivered {
		t.Errorf("%+v", d)
	}
	w.eventually("one is under way, two wait", func() bool {
		return strings.Contains(w.ctl("-q", "list_queues", "name", "messages_ready", "messages_unacknowledged", "consumers"),
			"email\t2\t1\t1\n")
	})
	must(t, d.Nack(false, true))
	if d = receive(t, in); string(d.Body) != "one" || !d.Redelivered {
		t.Errorf("given back, it comes again: %q %v", d.Body, d.Redelivered)
	}
	must(t, d.Ack(false))
	if d = receive(t, in); string(d.Body) != large {
		t.Errorf("%d bytes", len(d.Body))
	}
	must(t, d.Reject(false))
	d = receive(t, in)
	must(t, d.Ack(true))
	must(t, ch.Cancel("me", false))
	if _, ok, err := ch.Get("email", true); ok || err != nil {
		t.Errorf("there is something left: %v, %v", ok, err)
	}
	// An acknowledgement of what is not there closes the channel, not the connection.
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	must(t, d.Ack(false))
	if e := <-closed; e == nil || e.Code != amqp.PreconditionFailed {
		t.Errorf("acknowledged twice: %v", e)
	}
}

func TestExchanges(t *testing.T) {
	w := start(t)
	c, ch := w.connect()
	for _, e := range []struct{ name, kind string }{{"d", "direct"}, {"f", "fanout"}, {"t", "topic"}} {
		must(t, ch.ExchangeDeclare(e.name, e.kind, true, false, false, false, nil))
	}
	declare(t, ch, "q")
	must(t, ch.QueueBind("q", "a", "d", false, nil))
	must(t, ch.QueueBind("q", "", "f", false, nil))
	must(t, ch.QueueBind("q", "order.*.paid", "t", false, nil))
	must(t, ch.QueueBind("q", "order.#", "t", false, nil)) // Once all the same.
	for _, p := range [][2]string{{"d", "a"}, {"d", "b"}, {"f", "x"}, {"t", "order.1.paid"}, {"t", "train"}} {
		publish(t, ch, p[0], p[1], p[0]+" "+p[1])
	}
	var got []string
	for {
		d, ok, err := ch.Get("q", true)
		must(t, err)
		if !ok {
			break
		}
		got = append(got, string(d.Body))
	}
	if d := cmp.Diff([]string{"d a", "f x", "t order.1.paid"}, got); d != "" {
		t.Error(d)
	}
	if out := w.ctl("list_bindings"); !strings.Contains(out, "t\tq\torder.#\n") {
		t.Errorf("%s", out)
	}
	must(t, ch.QueueUnbind("q", "a", "d", nil))
	must(t, ch.ExchangeDelete("f", false, false))

	// What cannot be routed comes back, and is confirmed.
	must(t, ch.Confirm(false))
	returned, confirmed := ch.NotifyReturn(make(chan amqp.Return, 1)), ch.NotifyPublish(make(chan amqp.Confirmation, 2))
	must(t, ch.PublishWithContext(t.Context(), "d", "a", true, false, amqp.Publishing{Body: []byte("lost")}))
	if r := <-returned; r.ReplyCode != amqp.NoRoute || string(r.Body) != "lost" {
		t.Errorf("%+v", r)
	}
	if a := <-confirmed; !a.Ack || a.DeliveryTag != 1 {
		t.Errorf("%+v", a)
	}
	publish(t, ch, "", "q", "kept")
	if a := <-confirmed; !a.Ack || a.DeliveryTag != 2 {
		t.Errorf("%+v", a)
	}
	// What this node does not have, it says.
	for what, do := range map[string]func(*amqp.Channel) error{
		"transactions": func(ch *amqp.Channel) error { return ch.Tx() },
		"headers exchanges": func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare("h", "headers", false, false, false, false, nil)
		},
		"x-dead-letter-exchange": func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("dead", false, false, false, false, amqp.Table{"x-dead-letter-exchange": "d"})
			return err
		},
	} {
		c, err := w.dial("train", "secret")
		must(t, err)
		err = do(w.channel(c))
		if e := new(amqp.Error); !errors.As(err, &e) || e.Code != amqp.NotImplemented || !strings.Contains(e.Reason, what) {
			t.Errorf("%s: %v", what, err)
		}
		c.Close()
	}
	if _, err := w.channel(c).QueueDeclare("q", false, false, false, false, nil); err == nil ||
		!strings.Contains(err.Error(), "inequivalent arg 'durable' for queue 'q'") {
		t.Errorf("declared otherwise: %v", err)
	}
}

func TestTopics(t *testing.T) {
	for _, tt := range []struct {
		pattern, key string
		want         bool
	}{
		{"a.b", "a.b", true},
		{"a.*", "a.b", true},
		{"a.*", "a", false},
		{"*", "", false},
		{"#", "", true},
		{"#", "a.b.c", true},
		{"a.#", "a", true},
		{"a.#.z", "a.b.c.z", true},
		{"a.#.z", "a.z.b", false},
		{"#.b.#.b", "a.b.c.b", true},
		{"#.b.*", "b.b.b", true},
		{"", "", true},
	} {
		if got := topicMatches(tt.pattern, tt.key); got != tt.want {
			t.Errorf("%q of %q: %v", tt.pattern, tt.key, got)
		}
	}
}

// Durable queues, their bindings, persistent messages in them and users are there after a restart.
func TestRestart(t *testing.T) {
	w := start(t)
	_, ch := w.connect()
	declare(t, ch, "email")
	must(t, ch.ExchangeDeclare("orders", "topic", true, false, false, false, nil))
	must(t, ch.QueueBind("email", "#", "orders", false, nil))
	_, err := ch.QueueDeclare("short-lived", false, false, false, false, nil)
	must(t, err)
	must(t, ch.Confirm(false))
	confirmed := ch.NotifyPublish(make(chan amqp.Confirmation, 4))
	for _, body := range []string{"one", "two", "three"} {
		publish(t, ch, "orders", "x", body)
	}
	must(t, ch.PublishWithContext(t.Context(), "", "email", false, false, amqp.Publishing{Body: []byte("transient")}))
	for range 4 {
		<-confirmed
	}
	d, _, err := ch.Get("email", false)
	must(t, err)
	must(t, d.Ack(false)) // "one" is done with.
	w.eventually("three are left", func() bool { return strings.Contains(w.ctl("list_queues"), "email\t3\n") })
	w.ctl("add_user", "seat", "pw")
	w.stop()
	w.boot()

	c, ch := w.connect()
	var got []string
	for {
		d, ok, err := ch.Get("email", true)
		must(t, err)
		if !ok {
			break
		}
		got = append(got, string(d.Body))
		if d.ContentType != "text/plain" || d.Headers["n"] != int32(1) {
			t.Errorf("%+v", d)
		}
	}
	if d := cmp.Diff([]string{"two", "three"}, got); d != "" {
		t.Error(d)
	}
	publish(t, ch, "orders", "later", "four")
	if d, ok, err := ch.Get("email", true); !ok || err != nil || string(d.Body) != "four" {
		t.Errorf("the binding is lost: %v, %v", ok, err)
	}
	if _, err := w.channel(c).QueueDeclarePassive("short-lived", false, false, false, false, nil); err == nil {
		t.Error("a queue that is not durable is there")
	}
	if out := w.ctl("list_users"); !strings.Contains(out, "seat\t[]\n") || !strings.Contains(out, "train\t[administrator]\n") {
		t.Errorf("%s", out)
	}
}

// What a consumer that has gone had not acknowledged goes to another one.
func TestConsumersShare(t *testing.T) {
	w := start(t)
	one, a := w.connect()
	_, b := w.connect()
	declare(t, a, "q")
	must(t, a.Qos(2, 0, false))
	must(t, b.Qos(2, 0, true))
	toA, err := a.Consume("q", "", false, false, false, false, nil)
	must(t, err)
	toB, err := b.Consume("q", "", false, false, false, false, nil)
	must(t, err)
	for i := range 6 {
		publish(t, a, "", "q", fmt.Sprint(i))
	}
	seen := map[string]int{}
	for range 2 {
		seen[string(receive(t, toA).Body)]++
		d := receive(t, toB)
		seen[string(d.Body)]++
		must(t, d.Ack(false))
	}
	if len(seen) != 4 {
		t.Errorf("%v", seen)
	}
	one.Close()
	for range 4 { // The two that waited, and the two that were given back.
		d := receive(t, toB)
		seen[string(d.Body)]++
		must(t, d.Ack(false))
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
	// A queue that is deleted tells its consumers.
	gone := b.NotifyCancel(make(chan string, 1))
	w.ctl("delete_queue", "q")
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("nobody says that the queue has gone")
	}
}

func TestQueueLimits(t *testing.T) {
	w := start(t)
	c, ch := w.connect()
	_, err := ch.QueueDeclare("two", false, false, false, false, amqp.Table{"x-max-length": int32(2)})
	must(t, err)
	for _, body := range []string{"a", "b", "c"} {
		publish(t, ch, "", "two", body)
	}
	if d, ok, err := ch.Get("two", true); !ok || err != nil || string(d.Body) != "b" || d.MessageCount != 1 {
		t.Errorf("the oldest has to go: %+v, %v", d, err)
	}
	_, err = ch.QueueDeclare("brief", false, true, false, false, amqp.Table{"x-message-ttl": int64(1)})
	must(t, err)
	publish(t, ch, "", "brief", "a")
	w.eventually("it expires", func() bool { return strings.Contains(w.ctl("list_queues"), "brief\t0\n") })

	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	other, there := w.connect()
	if _, err := there.QueueDeclarePassive(q.Name, false, false, true, false, nil); err == nil || !strings.Contains(err.Error(), "RESOURCE_LOCKED") {
		t.Errorf("a queue of another connection: %v", err)
	}
	c.Close()
	w.eventually("it goes with its connection", func() bool { return !strings.Contains(w.ctl("list_queues"), q.Name) })
	ch = w.channel(other)
	err = ch.PublishWithContext(t.Context(), "", "two", false, false, amqp.Publishing{Body: make([]byte, maxBody+1)})
	must(t, err)
	if e := <-ch.NotifyClose(make(chan *amqp.Error, 1)); e != nil && e.Code != amqp.PreconditionFailed {
		t.Errorf("a message that is too large: %v", e)
	}
}

// Publishers wait while there is too much, and go on when it is less.
func TestMemoryAlarm(t *testing.T) {
	w := start(t)
	c, ch := w.connect()
	declare(t, ch, "q")
	blocked := c.NotifyBlocked(make(chan amqp.Blocking, 2))
	body := strings.Repeat("x", 3<<20)
	stop := make(chan struct{})
	published := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				published <- nil
				return
			default:
			}
			if err := ch.PublishWithContext(context.Background(), "", "q", false, false,
				amqp.Publishing{Body: []byte(body)}); err != nil {
				published <- err
				return
			}
		}
	}()
	if b := <-blocked; !b.Active {
		t.Errorf("%+v", b)
	}
	if out := w.ctl("status"); !strings.Contains(out, "memory resource limit alarm") {
		t.Errorf("%s", out)
	}
	close(stop)
	w.ctl("purge_queue", "q")
	if b := <-blocked; b.Active {
		t.Errorf("%+v", b)
	}
	for { // It may be blocked and freed once more.
		select {
		case err := <-published:
			must(t, err)
			return
		case <-blocked:
			w.ctl("purge_queue", "q")
		case <-time.After(patience):
			t.Fatal("the publisher is stuck")
		}
	}
}

func TestUsers(t *testing.T) {
	w := start(t)
	if _, err := w.dial("train", "wrong"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a wrong password: %v", err)
	}
	w.eventually("the log tells", func() bool {
		return strings.Contains(w.run.Stdout.String(), "PLAIN login refused: user 'train' - invalid credentials")
	})
	w.ctl("add_user", "seat", "pw")
	if _, err := w.dial("seat", "pw"); err == nil {
		t.Error("a user without permissions may connect")
	}
	w.ctl("set_permissions", "-p", "/", "seat", "^seat-.*", "^seat-.*|amq\\.default", ".*")
	c, err := w.dial("seat", "pw")
	must(t, err)
	defer c.Close()
	if _, err := w.channel(c).QueueDeclare("email", false, false, false, false, nil); err == nil ||
		!strings.Contains(err.Error(), "configure access to 'email' in vhost '/' refused for user 'seat'") {
		t.Errorf("%v", err)
	}
	ch := w.channel(c)
	_, err = ch.QueueDeclare("seat-1", false, false, false, false, nil)
	must(t, err)
	if out := w.ctl("list_permissions"); !strings.Contains(out, "seat\t^seat-.*\t") {
		t.Errorf("%s", out)
	}
	w.ctl("change_password", "seat", "other")
	if _, err := w.dial("seat", "pw"); err == nil {
		t.Error("the old password is still right")
	}
	w.ctl("authenticate_user", "seat", "other")
	w.ctl("delete_user", "seat")
	if _, err := ch.QueueDeclare("seat-2", false, false, false, false, nil); err == nil {
		t.Error("a user who was deleted may go on")
	}
	for _, args := range [][]string{
		{"nonsense"},
		{"add_user", "one"},
		{"delete_user", "nobody"},
		{"list_queues", "color"},
		{"set_permissions", "train", "(", ".*", ".*"},
		{"list_queues", "-p", "other"},
		{"--formatter", "json", "list_queues"},
	} {
		run := w.server.Start(Ctl, append([]string{"rabbitmqctl"}, args...)...)
		if code := run.Wait(); code == 0 || run.Stderr.String() == "" {
			t.Errorf("%v: exit %d, %s", args, code, run.Stderr)
		}
	}
}

func TestMetrics(t *testing.T) {
	w := start(t)
	_, ch := w.connect()
	declare(t, ch, "email")
	publish(t, ch, "", "email", "a")
	w.eventually("it is told", func() bool {
		body := kittest.Get(t, w.user, "http://rabbitmq:15692/metrics").Body
		return strings.Contains(body, `rabbitmq_queue_messages_ready{vhost="/",queue="email"} 1`) &&
			strings.Contains(body, "rabbitmq_global_messages_received_total 1\n")
	})
}

// A probe, a stranger and somebody who says nothing do no harm.
func TestStrangers(t *testing.T) {
	w := start(t)
	for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n", "AMQP\x00\x01\x00\x00"} {
		c, err := w.user.Env("x").Net.DialContext(t.Context(), "tcp", "rabbitmq:5672")
		must(t, err)
		_, _ = c.Write([]byte(text))
		if text != "" {
			answer := make([]byte, 8)
			_, _ = c.Read(answer)
			if string(answer) != "AMQP\x00\x00\x09\x01" {
				t.Errorf("%q is answered by %q", text, answer)
			}
		}
		c.Close()
	}
	_, ch := w.connect()
	declare(t, ch, "q")
}
