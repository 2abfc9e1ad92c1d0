package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/record"
)

// heartbeat is how often a stream with nothing to tell says so, lest somebody on the way cuts it.
const heartbeat = 15 * time.Second

// withheld reports whether an event tells the truth, and so comes only after the verdict. That the
// phase of the injection is over at once would tell that there is no fault.
func withheld(e record.Event) bool {
	switch e.Kind {
	case record.ProblemEvent, record.PastEvent, record.BaselineEvent, record.NoiseEvent, record.DecoyEvent,
		record.FaultEvent, record.HandOverEvent, record.SeverityEvent, record.TransactionEvent, record.LookEvent,
		record.JudgementEvent, record.VerdictEvent, record.FoundEvent:
		return true
	case record.PhaseEvent:
		var p record.Phase
		return e.Decode(&p) != nil || p.Name == "injecting"
	}
	return false
}

// feed is a stream of events that can be read from any point, any number of times. Its numbers are
// not the record's: gaps between those would tell of what is withheld.
type feed struct {
	mu     sync.Mutex
	events []Event
	more   chan struct{} // closed when there are more, or there will be none
	ended  bool
}

func newFeed() *feed { return &feed{more: make(chan struct{})} }

// add appends an event of a record that goes on, unless it is withheld.
func (f *feed) add(e record.Event) {
	if withheld(e) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, Event{len(f.events) + 1, e.Time, e.Kind, e.Data})
	close(f.more)
	f.more = make(chan struct{})
}

// end says that there will be no more. If the record is at its end, what was withheld comes now.
func (f *feed) end(rec *record.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rec != nil {
		f.events = published(rec)
	}
	f.ended = true
	close(f.more)
}

// published are the events of a record in the order in which they are streamed: those that may be
// seen as they happen, then the others.
func published(rec *record.Record) []Event {
	list := make([]Event, 0, len(rec.Events))
	for _, late := range []bool{false, true} {
		for _, e := range rec.Events {
			if withheld(e) == late {
				list = append(list, Event{len(list) + 1, e.Time, e.Kind, e.Data})
			}
		}
	}
	return list
}

// after returns the events behind the first n, a channel that is closed when there are more, and
// whether there will be none.
func (f *feed) after(n int) (events []Event, more <-chan struct{}, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events[min(n, len(f.events)):], f.more, f.ended
}

// serve streams the events as server-sent ones. Who comes back with the id of the last event it got
// misses none.
func (f *feed) serve(w http.ResponseWriter, r *http.Request) error {
	seen := 0
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		var err error
		if seen, err = strconv.Atoi(last); err != nil || seen < 0 {
			return fail(http.StatusUnprocessableEntity, "Last-Event-ID %q is not the id of an event", last)
		}
	}
	if rest, _, ended := f.after(seen); ended && len(rest) == 0 {
		w.WriteHeader(http.StatusNoContent) // A browser does not come back then.
		return nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	c := http.NewResponseController(w)
	idle := time.NewTicker(heartbeat)
	defer idle.Stop()
	for {
		events, more, ended := f.after(seen)
		for _, e := range events {
			b, err := json.Marshal(e)
			if err != nil {
				return nil //nolint:nilerr // The answer has begun.
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, b); err != nil {
				return nil //nolint:nilerr // They are gone.
			}
		}
		seen += len(events)
		if err := c.Flush(); err != nil || ended {
			return nil //nolint:nilerr // They are gone.
		}
		select {
		case <-more:
		case <-idle.C:
			if _, err := fmt.Fprint(w, ":\n\n"); err != nil {
				return nil //nolint:nilerr // They are gone.
			}
		case <-r.Context().Done():
			return nil
		}
	}
}
