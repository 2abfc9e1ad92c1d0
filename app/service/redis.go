package service

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	redisConnections = 64
	redisIdle        = time.Minute
	// redisTries is how often a command is tried if its connection turns out to be dead: the server
	// has closed those that were kept.
	redisTries = 3
)

// Redis is a client of a Redis server. Its connections are kept and shared.
type Redis struct{ pool *redis.Pool }

// Command is a command and its arguments.
type Command []any

// Redis returns a client of a Redis server. It connects when it is first used.
func (s *Service) Redis(address string) *Redis {
	r := &Redis{&redis.Pool{
		MaxActive: redisConnections, MaxIdle: redisConnections, IdleTimeout: redisIdle, Wait: true,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, StoreTimeout)
			defer cancel()
			conn, err := s.Env.Net.DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			c := redis.NewConn(conn, StoreTimeout, StoreTimeout)
			if _, err := redis.DoContext(c, ctx, "CLIENT", "SETNAME", s.Name); err != nil {
				_ = c.Close()
				return nil, err
			}
			return c, nil
		},
	}}
	s.onClose(func(context.Context) error { return r.pool.Close() })
	return r
}

// Do sends commands in one go and returns the reply to the last.
func (r *Redis) Do(ctx context.Context, commands ...Command) (reply any, err error) {
	for range redisTries {
		var dead bool
		if reply, dead, err = r.try(ctx, commands); !dead || ctx.Err() != nil {
			break
		}
	}
	return reply, err
}

// Strings sends a command whose reply is a list of strings.
func (r *Redis) Strings(ctx context.Context, command ...any) ([]string, error) {
	return redis.Strings(r.Do(ctx, command))
}

// try sends the commands over one connection, and says whether that is dead.
func (r *Redis) try(ctx context.Context, commands []Command) (reply any, dead bool, err error) {
	c, err := r.pool.GetContext(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		dead = c.Err() != nil
		_ = c.Close()
	}()
	for _, cmd := range commands {
		if err := c.Send(cmd[0].(string), cmd[1:]...); err != nil {
			return nil, false, err
		}
	}
	if err := c.Flush(); err != nil {
		return nil, false, err
	}
	for range commands {
		if reply, err = redis.ReceiveContext(c, ctx); err != nil {
			return nil, false, err
		}
	}
	return reply, false, nil
}
