package session

import (
	"sync"
	"time"
)

// hungerWindow is how far back it is looked.
const hungerWindow = 5 * time.Second

// hunger measures how much of its time this process waits for a processor that others have.
type hunger struct {
	mu      sync.Mutex
	samples []scheduled // of the window, and the last one before it
	read    func() (ran, waited time.Duration)
}

// scheduled is what a process has had of the processors up to a time.
type scheduled struct {
	at          time.Time
	ran, waited time.Duration
}

// waited is the part of the time that the process had work to do in which it waited, in the window before now. It is 0
// where the system does not tell.
func (h *hunger) waited(now time.Time) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	read := h.read
	if read == nil {
		read = processTimes
	}
	last := scheduled{at: now}
	last.ran, last.waited = read()
	h.samples = append(h.samples, last)
	for len(h.samples) > 2 && now.Sub(h.samples[1].at) >= hungerWindow {
		h.samples = h.samples[1:]
	}
	// A thread that ends takes its numbers with it, so they can shrink.
	ran, waited := max(0, last.ran-h.samples[0].ran), max(0, last.waited-h.samples[0].waited)
	if ran+waited == 0 {
		return 0
	}
	return float64(waited) / float64(ran+waited)
}
