package rabbitmq

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/image/internal/inlet"
	"github.com/aiopslab/aiopslab/kit"
)

// sweepEvery is how often queues are looked through for messages that are too old.
const sweepEvery = time.Second

// Main runs a node until it is told to stop.
func Main(ctx context.Context, env *kit.Env) error { return boot(ctx, env, false) }

// Managed runs a node with the API of the plugin rabbitmq_management.
func Managed(ctx context.Context, env *kit.Env) error { return boot(ctx, env, true) }

func boot(ctx context.Context, env *kit.Env, managed bool) error {
	log := &journal{out: env.Stdout}
	s, err := readSettings(env)
	if err != nil {
		log.fail("the settings are wrong: %v", err)
		return kit.Exit(1)
	}
	s.managed = managed
	b := newBroker(env, s, log)
	defer b.holder.Release()
	if err := b.run(ctx); err != nil && ctx.Err() == nil {
		log.fail("BOOT FAILED: %v", err)
		return kit.Exit(1)
	}
	return nil
}

func (b *broker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	b.env.Keep(kit.NotKept) // Some of its messages are on no disk.
	b.log.info("Starting RabbitMQ %s as node %s", Version, b.settings.node)
	disk, defs, err := openStore(b.env, b.settings.dir())
	if err != nil {
		return err
	}
	b.disk = disk
	defer func() { // When nobody writes any more.
		wg.Wait()
		_ = disk.log.Close()
	}()
	if err := b.restore(defs); err != nil {
		return err
	}
	b.log.info("database dir: %s, %d durable queues, %d messages recovered", b.settings.dir(), len(b.queues),
		len(disk.live))
	b.remember()
	cookie, err := b.cookie()
	if err != nil {
		return err
	}
	doors := map[string]http.Handler{":" + metricsPort: b.metrics(), ctlAddress: b.control(cookie)}
	if b.settings.managed {
		doors[":"+managementPort] = b.management()
		b.log.info("Management plugin: HTTP listener started on port %s", managementPort)
	}
	for address, handler := range doors {
		ln, err := b.env.Net.Listen("tcp", address)
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
		defer srv.Close()
		wg.Go(func() { _ = srv.Serve(ln) })
	}
	ln, err := b.env.Net.Listen("tcp", ":"+b.settings.port)
	if err != nil {
		return err
	}
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	b.log.info("started TCP listener on [::]:%s", b.settings.port)
	b.log.info("Server startup complete; metrics on port %s", metricsPort)
	wg.Go(func() { b.sweep(ctx) })
	inlet.Serve(ctx, ln, func(c net.Conn) { wg.Go(func() { b.serve(ctx, c) }) },
		func(err error) { b.log.fail("cannot accept a connection: %v", err) })
	b.log.info("RabbitMQ is asked to stop...")
	return ctx.Err()
}

// sweep drops messages that nobody has taken in time.
func (b *broker) sweep(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			b.mu.Lock()
			for _, q := range b.queues {
				b.expire(q, now)
			}
			b.mu.Unlock()
		}
	}
}

// cookie is what tools show to be let in; a node without one makes it.
func (b *broker) cookie() (string, error) {
	data, err := b.env.ReadFile(cookieFile)
	if err == nil && len(data) > 0 {
		return string(data), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	cookie := random("")
	return cookie, b.env.WriteFile(cookieFile, []byte(cookie), 0o400)
}
