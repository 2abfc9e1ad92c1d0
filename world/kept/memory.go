package kept

import (
	"slices"
	"sync"
)

// Memory keeps worlds in the memory of a process, where only that process can write them: for one whose clients are not
// confined. It is safe for concurrent use, and the zero value is empty.
type Memory struct {
	mu     sync.Mutex
	worlds []held // the last used first; MaxWorlds at most
}

type held struct {
	key   string
	world []byte
}

// Get returns the world of a key, which the caller must not change; nil if there is none.
func (m *Memory) Get(key string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.worlds, func(h held) bool { return h.key == key })
	if i < 0 {
		return nil
	}
	found := m.worlds[i]
	m.worlds = slices.Insert(slices.Delete(m.worlds, i, i+1), 0, found)
	return found.world
}

// Put keeps the world of a key, which the caller must not change any more, and forgets the one that has not been used
// for longest if there are too many.
func (m *Memory) Put(key string, world []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.worlds = slices.DeleteFunc(m.worlds, func(h held) bool { return h.key == key })
	m.worlds = slices.Insert(m.worlds, 0, held{key, world})
	if len(m.worlds) > MaxWorlds {
		m.worlds = slices.Delete(m.worlds, MaxWorlds, len(m.worlds))
	}
}
