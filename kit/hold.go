package kit

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

const (
	// holdQuantum is how exactly memory is stated. Ordinary commands never come to it, and cost nothing.
	holdQuantum = 256 << 10
	// maxHeld is what all programs of the process together may really hold. Containers without a limit
	// have as much as a node of the model, which is more than the machine has.
	maxHeld = 768 << 20
	// heldSlack is what others may take beyond that until the container that has most of it is gone.
	heldSlack = 128 << 20
)

// held is what all programs hold, and those of each container.
var held = struct {
	sync.Mutex
	total int64
	by    map[Memory]int64
}{by: map[Memory]int64{}}

// claim changes what the programs of a container hold. If that is too much for the process, the
// container that holds most has to go: if it is this one, or there is no more room at all, the claim
// fails; if it is another, that one is returned.
func claim(m Memory, n int64) (heaviest Memory, ok bool) {
	held.Lock()
	defer held.Unlock()
	take := func(n int64) {
		held.total += n
		if held.by[m] += n; held.by[m] <= 0 {
			delete(held.by, m)
		}
	}
	take(n)
	if n <= 0 || held.total <= maxHeld {
		return nil, true
	}
	heaviest = m
	for other, size := range held.by {
		if size > held.by[heaviest] {
			heaviest = other
		}
	}
	if heaviest == m || held.total > maxHeld+heldSlack {
		take(-n)
		return nil, false
	}
	return heaviest, true
}

// errNoMemory ends a program that has been killed for what it holds.
var errNoMemory = errors.New("cannot allocate memory")

// IsOutOfMemory reports whether an error is one of a Holder.
func IsOutOfMemory(err error) bool { return errors.Is(err, errNoMemory) }

// Holder states the memory that a program really holds to its container. It is safe for concurrent
// use. The zero value, and a nil one, state nothing.
type Holder struct {
	memory  Memory
	quantum int64

	mu     sync.Mutex
	size   int64
	stated int64
}

// NewHolder returns a Holder for a program in env. It holds nothing yet.
func NewHolder(env *Env) *Holder { return &Holder{memory: env.Memory, quantum: holdQuantum} }

// NewExactHolder is like NewHolder, for a program whose figures people look at: a store, which states to the byte
// what its data take.
func NewExactHolder(env *Env) *Holder { return &Holder{memory: env.Memory, quantum: 1} }

// Add changes what is held. It fails if that is too much; the container is then about to be killed.
func (h *Holder) Add(n int) error {
	if h == nil || h.memory == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.size = max(h.size+int64(n), 0)
	step := (h.size - h.stated) / h.quantum * h.quantum
	if step == 0 {
		return nil
	}
	heaviest, ok := claim(h.memory, step)
	if !ok {
		exhaust(h.memory)
		return errNoMemory
	}
	if heaviest != nil {
		exhaust(heaviest)
	}
	if err := h.memory.Add(step); err != nil {
		claim(h.memory, -step)
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	h.stated += step
	return nil
}

// Release gives everything back.
func (h *Holder) Release() {
	if h == nil || h.memory == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stated != 0 {
		claim(h.memory, -h.stated)
		_ = h.memory.Add(-h.stated)
	}
	h.size, h.stated = 0, 0
}

// Exhaust has the container killed for lack of memory. It is for a program that ran out of memory before it could
// state what it took.
func (h *Holder) Exhaust() {
	if h != nil && h.memory != nil {
		exhaust(h.memory)
	}
}

// exhaust asks for what no machine has, which kills the container.
func exhaust(m Memory) { _ = m.Add(math.MaxInt64 / 4) }
