package page

import (
	"errors"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/record/index"
)

// fresh is for how long an index is taken as it is, and patience how long a page waits for a newer one if there is an
// older one.
const (
	fresh    = time.Second
	patience = 50 * time.Millisecond
)

// shelf is the records of a directory, by their index.
type shelf struct {
	dir, cache string
	now        func() time.Time

	mu      sync.Mutex
	last    *index.Index
	read    time.Time
	reading *reading
}

// reading is an index that is being read.
type reading struct {
	done  chan struct{}
	index *index.Index
	err   error
}

// index returns what is known of the runs, a second old at most, or a few more if there are many.
func (s *shelf) index() (*index.Index, error) {
	s.mu.Lock()
	if s.last != nil && s.now().Sub(s.read) < fresh {
		defer s.mu.Unlock()
		return s.last, nil
	}
	r, last := s.reading, s.last
	if r == nil {
		r = &reading{done: make(chan struct{})}
		s.reading = r
		go s.open(r)
	}
	s.mu.Unlock()
	if last == nil {
		<-r.done
		return r.index, r.err
	}
	select {
	case <-r.done:
		return r.index, r.err
	case <-time.After(patience):
		return last, nil
	}
}

func (s *shelf) open(r *reading) {
	r.index, r.err = index.Open(s.dir, index.Options{Cache: s.cache})
	if errors.Is(r.err, fs.ErrNotExist) {
		r.index, r.err = &index.Index{Dir: s.dir}, nil // There will be one when the first run begins.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err == nil {
		s.last, s.read = r.index, s.now()
	}
	s.reading = nil
	close(r.done)
}

// find returns the run with an id.
func (s *shelf) find(id string) (index.Run, error) {
	x, err := s.index()
	if err != nil {
		return index.Run{}, err
	}
	for _, r := range x.Runs {
		if r.ID == id {
			return r, nil
		}
	}
	return index.Run{}, fail(http.StatusNotFound, "there is no run %q in %s", visible(id), s.dir)
}
