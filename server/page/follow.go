package page

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	// glance is how often the record of a run under way is looked at.
	glance = 300 * time.Millisecond
	// heartbeat is how often a stream with nothing to tell says so, lest somebody on the way cuts it.
	heartbeat = 15 * time.Second
)

// follow tells, as server-sent events, that there may be more of a run than when the page was made, and whenever there
// is more. What there is, the page asks for: it is what the
// record has by then, in which the truth comes last.
func (s *Site) follow(w http.ResponseWriter, r *http.Request) error {
	run, err := s.shelf.find(r.PathValue("id"))
	if err != nil {
		return err
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // Not every connection has deadlines.
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	look := time.NewTicker(glance)
	defer look.Stop()
	idle := time.NewTicker(heartbeat)
	defer idle.Stop()
	var size int64 = -1
	for {
		info, err := os.Stat(run.File)
		if err != nil {
			return nil //nolint:nilerr // It is gone.
		}
		if info.Size() != size {
			size = info.Size()
			st, err := s.read.story(run.File)
			done := err == nil && st.Done
			kind := "more"
			if done {
				kind = "end"
			}
			if _, err := fmt.Fprintf(w, "event: %s\ndata: %d\n\n", kind, size); err != nil {
				return nil //nolint:nilerr // They are gone.
			}
			if c.Flush() != nil || done {
				return nil
			}
		}
		select {
		case <-look.C:
		case <-idle.C:
			if _, err := fmt.Fprint(w, ":\n\n"); err != nil || c.Flush() != nil {
				return nil //nolint:nilerr // They are gone.
			}
		case <-r.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}
