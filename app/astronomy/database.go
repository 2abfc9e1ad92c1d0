package astronomy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	// A service waits for its database at start, and asks again every databaseRetry.
	databaseRetry = 250 * time.Millisecond
	databaseWait  = time.Minute
	// databaseConnections are how many a service has at most.
	databaseConnections = 8
)

// database is a client of a PostgreSQL server. Its connections are kept and shared.
type database struct {
	s     *service.Service
	cfg   *pgx.ConnConfig
	slots chan *pgx.Conn // nil ones have yet to be made
}

// openDatabase connects to the database in DB_CONNECTION_STRING. It waits for a server that cannot be reached.
func openDatabase(ctx context.Context, s *service.Service) (*database, error) {
	cfg, err := pgx.ParseConfig(s.Env.Getenv("DB_CONNECTION_STRING"))
	if err != nil {
		return nil, fmt.Errorf("DB_CONNECTION_STRING: %w", err)
	}
	cfg.DialFunc = s.Env.Net.DialContext
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	cfg.ConnectTimeout = service.StoreTimeout
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.StatementCacheCapacity, cfg.DescriptionCacheCapacity = 0, 0
	cfg.RuntimeParams["application_name"] = s.Name
	d := &database{s: s, cfg: cfg, slots: make(chan *pgx.Conn, databaseConnections)}
	for range databaseConnections {
		d.slots <- nil
	}
	for deadline := time.Now().Add(databaseWait); ; {
		err := d.do(ctx, func(ctx context.Context, c *pgx.Conn) error { return c.Ping(ctx) })
		if err == nil {
			return d, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			d.close()
			return nil, err
		}
		s.Log.Warn("database is not reachable, try again", slog.Any("error", err))
		select {
		case <-time.After(databaseRetry):
		case <-ctx.Done():
		}
	}
}

// close hangs up.
func (d *database) close() {
	ctx, cancel := context.WithTimeout(context.Background(), service.StoreTimeout)
	defer cancel()
	for range databaseConnections {
		if c := <-d.slots; c != nil {
			_ = c.Close(ctx)
		}
	}
}

// query traces and counts what is asked of the database in one go. A connection that turns out to be dead was left
// from an earlier life of the server; then it is tried again with a new one.
func (d *database) query(ctx context.Context, operation string, f func(context.Context, *pgx.Conn) error) error {
	return d.s.Store(ctx, "postgresql", operation, func(ctx context.Context) error { return d.do(ctx, f) })
}

func (d *database) do(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, service.StoreTimeout)
	defer cancel()
	return d.patiently(ctx, f)
}

// patiently is do without a limit of time but that of the context.
func (d *database) patiently(ctx context.Context, f func(context.Context, *pgx.Conn) error) (err error) {
	for range databaseConnections + 1 {
		var c *pgx.Conn
		select {
		case c = <-d.slots:
		case <-ctx.Done():
			return ctx.Err()
		}
		kept := c != nil
		if !kept {
			if c, err = pgx.ConnectConfig(ctx, d.cfg); err != nil {
				d.slots <- nil
				return err
			}
		}
		err = f(ctx, c)
		if c.IsClosed() {
			c = nil
		}
		d.slots <- c
		if c != nil || !kept || ctx.Err() != nil {
			return err
		}
	}
	return err
}
