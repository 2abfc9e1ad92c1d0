package service

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/bradfitz/gomemcache/memcache"
)

// Cached looks keys up in memcached. It gets those that are not there from load, and keeps them. A cache that is
// down makes a service slow, not wrong: its errors are logged.
func Cached[T any](ctx context.Context, s *Service, c *memcache.Client, keys []string,
	load func(ctx context.Context, missing []string) (map[string]T, error),
) (map[string]T, error) {
	found := make(map[string]T, len(keys))
	var items map[string]*memcache.Item
	err := s.Store(ctx, "memcached", "get", func(context.Context) (err error) {
		items, err = c.GetMulti(keys)
		return err
	})
	if err != nil {
		s.Log.WarnContext(ctx, "Memcached error while trying to get", slog.Any("keys", keys), slog.Any("error", err))
	}
	var missing []string
	for _, k := range keys {
		var v T
		if item, ok := items[k]; ok && json.Unmarshal(item.Value, &v) == nil {
			found[k] = v
		} else {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	loaded, err := load(ctx, missing)
	if err != nil {
		return nil, err
	}
	for k, v := range loaded {
		found[k] = v
		if items != nil { // The cache answered: it is worth a try.
			Keep(ctx, s, c, k, v)
		}
	}
	return found, nil
}

// Keep writes one value to the cache.
func Keep(ctx context.Context, s *Service, c *memcache.Client, key string, v any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = s.Store(ctx, "memcached", "set", func(context.Context) error {
			return c.Set(&memcache.Item{Key: key, Value: b})
		})
	}
	if err != nil {
		s.Log.WarnContext(ctx, "Memcached error while trying to set", slog.String("key", key), slog.Any("error", err))
	}
}
