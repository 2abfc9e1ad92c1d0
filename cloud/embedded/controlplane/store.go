package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const registry = "/registry/"

// State is the content of the store: every object's key and stored bytes. Reading the store leaves out what
// changes by itself (see volatile), but for leases, which it tells apart. A state that was made by hand may have it.
type State map[string][]byte

// volatile reports whether a key is left out of snapshots: heartbeats, the API server's own address
// records and events. A restore deletes events, because they tell of what is undone.
func volatile(key string) bool {
	for _, prefix := range []string{"leases/", "masterleases/", "events/", "peerserverleases/"} {
		if strings.HasPrefix(key, registry+prefix) {
			return true
		}
	}
	return false
}

// readState reads the whole store, and the leases beside.
func readState(ctx context.Context, c *clientv3.Client) (s, leases State, err error) {
	res, err := c.Get(ctx, registry, clientv3.WithPrefix())
	if err != nil {
		return nil, nil, fmt.Errorf("read store: %w", err)
	}
	s, leases = State{}, State{}
	for _, kv := range res.Kvs {
		switch key := string(kv.Key); {
		case !volatile(key):
			s[key] = kv.Value
		case strings.HasPrefix(key, registry+"leases/"):
			leases[key] = kv.Value
		}
	}
	return s, leases, nil
}

// writeState makes the store hold exactly s: no other leases, and no other events. Only keys that differ are written,
// one revision each, so that watches deliver the change as ordinary events. It returns those revisions.
func writeState(ctx context.Context, c *clientv3.Client, s State) (map[string]int64, error) {
	now, leases, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	maps.Copy(now, leases)
	if _, err := c.Delete(ctx, registry+"events/", clientv3.WithPrefix()); err != nil {
		return nil, fmt.Errorf("clear events: %w", err)
	}
	return writeKeys(ctx, c, s, changedKeys(now, s))
}

// writeKeys makes the store hold what s holds, or does not hold, under the given keys. It returns the
// revisions.
func writeKeys(ctx context.Context, c *clientv3.Client, s State, keys []string) (map[string]int64, error) {
	written := make(map[string]int64, len(keys))
	for _, key := range keys {
		op := clientv3.OpDelete(key)
		if want, ok := s[key]; ok {
			op = clientv3.OpPut(key, string(want))
		}
		res, err := c.Do(ctx, op)
		if err != nil {
			return nil, fmt.Errorf("restore %s: %w", key, err)
		}
		if put := res.Put(); put != nil {
			written[key] = put.Header.Revision
		} else {
			written[key] = res.Del().Header.Revision
		}
	}
	return written, nil
}

// changedKeys returns the keys that differ, so ordered that an object's namespace and owners come
// before it: nothing should exist whose owner does not.
func changedKeys(now, want State) []string {
	var keys []string
	for key, b := range now {
		if w, ok := want[key]; !ok || !bytes.Equal(b, w) {
			keys = append(keys, key)
		}
	}
	for key := range want {
		if _, ok := now[key]; !ok {
			keys = append(keys, key)
		}
	}
	rank := func(key string) int {
		for i, kind := range []string{
			"apiextensions.k8s.io/", "namespaces/", "services/", "deployments/",
			"statefulsets/", "daemonsets/", "replicasets/",
		} {
			if strings.HasPrefix(key, registry+kind) {
				return i
			}
		}
		return 9
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := rank(keys[i]), rank(keys[j])
		return a < b || a == b && keys[i] < keys[j]
	})
	return keys
}

// Diff names the keys in which two states differ. What changes by itself is named only if the other state has none of
// it: who holds a lease renews it, but nobody has to have a new one.
func (s State) Diff(other State) []string {
	return slices.DeleteFunc(changedKeys(s, other), func(key string) bool {
		_, known := other[key]
		return known && volatile(key)
	})
}
