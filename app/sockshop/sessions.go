package sockshop

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	sessionCookie = "md.sid"
	sessionTime   = time.Hour
	// maxSessions is how many a front-end keeps that keeps them itself.
	maxSessions = 10_000
)

// session is what is known of a visitor.
type session struct {
	ID       string `json:"-"`
	Customer string `json:"customerId,omitempty"`
}

// sessions keep what is known of visitors: in Redis, or, if SESSION_REDIS is not set, in memory, where no other pod
// finds it.
type sessions struct {
	s      *server
	redis  *service.Redis
	mu     *sync.Mutex
	memory map[string]session
}

func newSessions(s *server) sessions {
	k := sessions{s: s, mu: new(sync.Mutex), memory: map[string]session{}}
	if s.Env.Getenv("SESSION_REDIS") != "" {
		s.Log.Info("Using the redis based session manager")
		k.redis = s.Redis("session-db:6379")
		s.Recall(k.recall)
	} else {
		s.Log.Info("Using local session manager")
	}
	return k
}

// of returns the session of a request. Who has none, or one that is too old, gets one.
func (k sessions) of(w http.ResponseWriter, r *http.Request) (session, error) {
	if c, err := r.Cookie(sessionCookie); err == nil && len(c.Value) == len(rand.Text()) {
		got, found, err := k.find(r.Context(), c.Value)
		if err != nil || found {
			return got, err
		}
	}
	one := session{ID: rand.Text()}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: one.ID, Path: "/", HttpOnly: true})
	return one, k.keep(r.Context(), one)
}

func (k sessions) find(ctx context.Context, id string) (one session, found bool, err error) {
	if k.redis == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		one, found = k.memory[id]
		return one, found, nil
	}
	err = k.s.Store(ctx, "redis", "get session", func(ctx context.Context) error {
		data, err := redis.Bytes(k.redis.Do(ctx, service.Command{"GET", "sess:" + id}))
		if errors.Is(err, redis.ErrNil) {
			return nil
		}
		if err == nil {
			found, err = true, json.Unmarshal(data, &one)
		}
		return err
	})
	one.ID = id
	return one, found, err
}

func (k sessions) keep(ctx context.Context, one session) error {
	if k.redis == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.memory) >= maxSessions {
			clear(k.memory)
		}
		k.memory[one.ID] = one
		return nil
	}
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return k.s.Store(ctx, "redis", "set session", func(ctx context.Context) error {
		_, err := k.redis.Do(ctx, service.Command{"SET", "sess:" + one.ID, data, "EX", int(sessionTime.Seconds())})
		return err
	})
}
