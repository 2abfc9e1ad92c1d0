package workload

import (
	"maps"
	"sync"
	"time"
)

const (
	// keptFor is how long something is remembered. It is short: a store that is rightly emptied makes
	// users miss what they wrote only for as long.
	keptFor = 5 * time.Second
	// keptMost is how much of a kind is remembered.
	keptMost = 32
)

// keeper is what the users of a load tell each other: variables of operations, by name.
type keeper struct {
	mu   sync.Mutex
	kept map[string][]kept
}

type kept struct {
	at   time.Time
	vars map[string]any
}

// keep remembers variables under a name.
func (m *keeper) keep(name string, vars map[string]any) {
	if name == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string][]kept{}
	}
	list := append(m.kept[name], kept{time.Now(), maps.Clone(vars)})
	m.kept[name] = list[max(0, len(list)-keptMost):]
}

// recall returns variables that were kept under a name not long ago, or nil. Which of them is up to n.
func (m *keeper) recall(name string, n uint64) map[string]any {
	if name == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.kept[name]
	if len(list) == 0 {
		return nil
	}
	for len(list) > 0 && time.Since(list[0].at) > keptFor {
		list = list[1:]
	}
	m.kept[name] = list
	if len(list) == 0 {
		return nil
	}
	return list[mix64(n)%uint64(len(list))].vars
}
