package rabbitmq

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

// What comes over the wire cannot break the node, whatever it is.
func FuzzFrames(f *testing.F) {
	open := []byte("AMQP\x00\x00\x09\x01")
	open = append(open, method(0, connStartOK).longstr("").shortstr("PLAIN").longstr("\x00guest\x00guest").shortstr("").end(0)...)
	open = append(open, method(0, connTuneOK).short(0).long(0).short(0).end(0)...)
	open = append(open, method(0, connOpen).shortstr("/").shortstr("").octet(0).end(0)...)
	open = append(open, method(1, chanOpen).shortstr("").end(0)...)
	declared := append(bytes.Clone(open), method(1, queueDeclare).short(0).shortstr("q").octet(bitDurable).long(0).end(0)...)
	published := append(bytes.Clone(declared), method(1, basicPublish).short(0).shortstr("").shortstr("q").octet(1).end(0)...)
	published = packet(published).content(1, &message{header: []byte{0x10, 0, 2}, body: []byte("hello")}, maxFrame)
	consumed := append(bytes.Clone(published), method(1, basicConsume).short(0).shortstr("q").shortstr("c").octet(0).long(0).end(0)...)
	consumed = append(consumed, method(1, basicNack).longlong(1).octet(2).end(0)...)
	consumed = append(consumed, method(1, basicAck).longlong(0).octet(1).end(0)...)
	bound := append(bytes.Clone(declared), method(1, queueBind).short(0).shortstr("q").shortstr("amq.topic").shortstr("#").octet(0).long(0).end(0)...)
	for _, seed := range [][]byte{open, declared, published, consumed, bound, open[:20], {1, 2, 3}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := kittest.New(t).Machine("rabbitmq", "10.244.0.2")
		m.Install(Image(nil))
		env := m.Env("rabbitmq-server")
		s, err := readSettings(env)
		if err != nil {
			t.Fatal(err)
		}
		b := newBroker(env, s, &journal{out: env.Stdout})
		disk, defs, err := openStore(env, s.dir())
		if err != nil {
			t.Fatal(err)
		}
		b.disk = disk
		if err := b.restore(defs); err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() { b.serve(context.Background(), there); close(done) }()
		go func() { _, _ = bufio.NewReader(here).WriteTo(discard{}) }()
		_ = here.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, _ = here.Write(data)
		here.Close()
		<-done
		if len(b.conns) > 0 || b.consumers > 0 {
			t.Errorf("%d connections, %d consumers are left", len(b.conns), b.consumers)
		}
		b.disk.log.Close()
		// And what is on the disk can be read again.
		if _, _, err := openStore(env, s.dir()); err != nil {
			t.Error(err)
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// A log of messages that was torn or tampered with is read as far as it is whole.
func FuzzLog(f *testing.F) {
	f.Add(record(recordKeep, 1, packet{0}.shortstr("q").shortstr("").shortstr("q").longstr("\x00\x00").longstr("hello")))
	f.Add(record(recordForget, 1, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := kittest.New(t).Machine("rabbitmq", "10.244.0.2")
		env := m.Env("rabbitmq-server")
		if err := env.MkdirAll("/d", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := env.WriteFile("/d/messages.log", data, 0o600); err != nil {
			t.Fatal(err)
		}
		disk, _, err := openStore(env, "/d")
		if err != nil {
			t.Fatal(err)
		}
		b := newBroker(env, &settings{vhost: "/", node: "n"}, &journal{out: env.Stdout})
		b.disk = disk
		b.queues["q"] = &queue{name: "q", durable: true, ttl: -1, maxLength: -1}
		b.reload()
		_ = disk.log.Close()
	})
}
