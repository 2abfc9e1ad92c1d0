package whisk

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	// keptRecent and keptFailed are how many activations are remembered: the last ones, and the last ones that failed.
	keptRecent, keptFailed = 2000, 400
	// savedRecent and savedFailed are how many of them are in the store, where another controller finds them.
	savedRecent, savedFailed = 600, 200
	// maxSaved is how long a record in the store may be; of a longer one the result is left out.
	maxSaved = 4 << 10
	// saveEvery is how often new ones are written, and saveQueue how many may wait for that. More are not saved.
	saveEvery = 250 * time.Millisecond
	saveQueue = 1000
	saveWait  = 2 * time.Second
	// reloadEvery is how often the store is looked into, at most, for what another controller has written.
	reloadEvery = time.Second
)

// Where the store has them: lists, the last one first.
const (
	recentKey = "whisk:activations"
	failedKey = "whisk:activations:failed"
)

// store remembers activations, and shares them with other controllers through Redis.
type store struct {
	s     *service.Service
	redis *service.Redis // nil for none

	mu       sync.Mutex
	byID     map[string]*Activation
	recent   []*Activation // the oldest first, as failed
	failed   []*Activation
	unsaved  []*Activation
	reloaded time.Time
	failing  bool // the store cannot be written to
}

func newStore(s *service.Service, redis *service.Redis) *store {
	return &store{s: s, redis: redis, byID: map[string]*Activation{}}
}

// add remembers an activation.
func (st *store) add(a *Activation) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.keep(a)
	if st.redis != nil && len(st.unsaved) < saveQueue {
		st.unsaved = append(st.unsaved, a)
	}
}

// keep puts an activation in its place by time, and forgets the oldest ones.
func (st *store) keep(a *Activation) {
	if st.byID[a.ID] != nil {
		return
	}
	st.byID[a.ID] = a
	if !a.Response.Success {
		st.failed = insert(st.failed, a)
		if len(st.failed) > keptFailed {
			st.forget(st.failed[0], st.recent)
			st.failed = slices.Delete(st.failed, 0, 1)
		}
	}
	st.recent = insert(st.recent, a)
	if len(st.recent) > keptRecent {
		st.forget(st.recent[0], st.failed)
		st.recent = slices.Delete(st.recent, 0, 1)
	}
}

// forget forgets an activation, unless another list still has it.
func (st *store) forget(a *Activation, other []*Activation) {
	if !slices.Contains(other, a) {
		delete(st.byID, a.ID)
	}
}

// insert puts an activation in its place by time.
func insert(list []*Activation, a *Activation) []*Activation {
	i := len(list)
	for i > 0 && list[i-1].Start > a.Start {
		i--
	}
	return slices.Insert(list, i, a)
}

// get finds an activation, or returns nil.
func (st *store) get(ctx context.Context, id string) *Activation {
	st.mu.Lock()
	a := st.byID[id]
	st.mu.Unlock()
	if a != nil || st.redis == nil {
		return a
	}
	st.reload(ctx)
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.byID[id]
}

// list returns activations, the last one first: of an action, or of all.
func (st *store) list(name string, skip, limit int) (list []*Activation) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all := st.recent
	if len(st.failed) > 0 && len(all) > 0 && st.failed[0].Start < all[0].Start {
		all = slices.Clone(all)
		for _, a := range st.failed { // Some are older than all that is remembered of the others.
			if a.Start < st.recent[0].Start {
				all = insert(all, a)
			}
		}
	}
	for _, a := range slices.Backward(all) {
		switch {
		case name != "" && a.Name != name:
		case skip > 0:
			skip--
		case len(list) < limit:
			list = append(list, a)
		default:
			return list
		}
	}
	return list
}

// run writes new activations to Redis until the context ends, and then the last ones.
func (st *store) run(ctx context.Context) {
	if st.redis == nil {
		return
	}
	st.reload(ctx)
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			st.save(ctx)
		case <-ctx.Done():
			st.save(context.WithoutCancel(ctx))
			return
		}
	}
}

// save writes what was not written yet. A store that is away loses them: nobody should wait for it.
func (st *store) save(ctx context.Context) {
	st.mu.Lock()
	list := st.unsaved
	st.unsaved = nil
	st.mu.Unlock()
	if len(list) == 0 {
		return
	}
	recent, failed := service.Command{"LPUSH", recentKey}, service.Command{"LPUSH", failedKey}
	for _, a := range list {
		b, err := encode(a)
		if err != nil {
			continue
		}
		recent = append(recent, b)
		if !a.Response.Success {
			failed = append(failed, b)
		}
	}
	commands := []service.Command{recent, {"LTRIM", recentKey, 0, savedRecent - 1}}
	if len(failed) > 2 {
		commands = append(commands, failed, service.Command{"LTRIM", failedKey, 0, savedFailed - 1})
	}
	ctx, cancel := context.WithTimeout(ctx, saveWait)
	defer cancel()
	_, err := st.redis.Do(ctx, commands...)
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil && !st.failing {
		st.s.Log.WarnContext(ctx, "Activations cannot be stored", "error", err)
	}
	st.failing = err != nil
}

// encode is the record as the store has it.
func encode(a *Activation) ([]byte, error) {
	b, err := json.Marshal(a)
	if err != nil || len(b) <= maxSaved {
		return b, err
	}
	short := *a
	short.Response.Result, short.Logs = json.RawMessage(`{"omitted":"the record was too long"}`), []string{}
	return json.Marshal(&short)
}

// reload remembers what other controllers have stored.
func (st *store) reload(ctx context.Context) {
	st.mu.Lock()
	soon := time.Since(st.reloaded) < reloadEvery
	if !soon {
		st.reloaded = time.Now()
	}
	st.mu.Unlock()
	if soon {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveWait)
	defer cancel()
	for _, key := range []string{failedKey, recentKey} {
		list, err := st.redis.Strings(ctx, "LRANGE", key, 0, -1)
		if err != nil {
			return
		}
		st.mu.Lock()
		for _, text := range list {
			var a Activation
			if len(text) <= maxSaved && json.Unmarshal([]byte(text), &a) == nil && len(a.ID) == 32 {
				st.keep(&a)
			}
		}
		st.mu.Unlock()
	}
}
