package box

import (
	"context"
	"time"
)

// diskShare is how much longer than looking at the files took is waited until the next look.
const diskShare = 20

// watch looks after the processes of the machine until ctx ends. If they take too much memory
// together the tools are ended and the shell is told to end its command; if that does not help the
// shell is ended too. Tools that fill the disk are ended. The channel tells whether memory was short.
func (h *host) watch(ctx context.Context) <-chan bool {
	result := make(chan bool, 1)
	go func() {
		t := time.NewTicker(watchPeriod)
		defer t.Stop()
		short := false
		var told, nextLook time.Time
		for {
			select {
			case <-ctx.Done():
				result <- short
				return
			case <-h.gone:
				result <- short
				return
			case now := <-t.C:
				shell, tools, n := h.memory()
				switch most := h.box.limits.Total; {
				case shell+tools <= most:
					told = time.Time{}
				case told.IsZero():
					short, told = true, now
					h.endTools(outOfMemory, all)
					_ = h.line.send(&message{Stop: true})
				case shell > most && now.Sub(told) > memoryPatience:
					h.end(outOfMemory)
				}
				if n > 0 && now.After(nextLook) {
					start := time.Now()
					if measure(h.box.root) > h.box.limits.Disk {
						h.endTools(noSpace, func(r *running) bool { return !r.readOnly })
					}
					nextLook = time.Now().Add(max(5*watchPeriod, diskShare*time.Since(start)))
				}
			}
		}
	}()
	return result
}

// memoryPatience is how long a shell that was told to end its command may still hold the memory.
const memoryPatience = time.Second

// memory is what the shell and the tools take, and how many tools there are.
func (h *host) memory() (shell, tools int64, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for cmd := range h.tools {
		tools += anonymous(cmd.Process.Pid)
	}
	return anonymous(h.cmd.Process.Pid), tools, len(h.tools)
}

// ended reports whether the process has ended.
func (h *host) ended() bool {
	select {
	case <-h.gone:
		return true
	default:
		return false
	}
}
