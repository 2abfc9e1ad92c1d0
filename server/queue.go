package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// DefaultMaxQueued is how many sessions may wait in line.
const DefaultMaxQueued = 64

// errUnbegun is why a session has no verdict that was cancelled in the line.
var errUnbegun = errors.New("cancelled while it waited in line")

// admit takes a place for a session, or one in the line if all are taken. Who waits is begun when a place is free.
func (f *Front) admit(e *entry) (now bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return false, errEnding
	case f.taken < f.MaxSessions:
		f.taken++
		return true, nil
	case len(f.queue) < f.MaxQueued:
		e.first.State = Queued
		f.queue = append(f.queue, e)
		e.first.Place = len(f.queue)
		return false, nil
	case f.MaxQueued > 0:
		return false, fail(http.StatusServiceUnavailable,
			"there are %d sessions and environments, as many as there may be, and %d wait in line; come back later, "+
				"or start the server with more --max-sessions", f.taken, len(f.queue))
	}
	return false, f.full()
}

// callIn begins the sessions that waited longest, as far as there are places. The caller holds f.mu.
func (f *Front) callIn() {
	for !f.closed && f.taken < f.MaxSessions && len(f.queue) > 0 {
		e := f.queue[0]
		f.queue = slices.Delete(f.queue, 0, 1)
		f.taken++
		f.running.Go(func() {
			if err := f.launch(f.ctx, e); err != nil {
				e.fail(err)
				f.giveBack(1)
				return
			}
			f.attend(e)
		})
	}
}

// place is where in the line a session is, from 1; 0 if it is not there any more.
func (f *Front) place(e *entry) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Index(f.queue, e) + 1
}

// leaveLine takes a session out of the line, and reports whether it was there.
func (f *Front) leaveLine(e *entry) bool {
	f.mu.Lock()
	i := slices.Index(f.queue, e)
	if i >= 0 {
		f.queue = slices.Delete(f.queue, i, i+1)
	}
	f.mu.Unlock()
	if i >= 0 {
		e.fail(errUnbegun)
	}
	return i >= 0
}

// fail ends a session that was not begun.
func (e *entry) fail(err error) {
	e.archive = Archive{Session: e.first}
	s := &e.archive.Session
	s.State, s.Place, s.Error = Failed, 0, err.Error()
	close(e.done)
}

// launched waits until a session has a worker, or has ended without.
func (e *entry) launched(ctx context.Context) error {
	select {
	case <-e.begun:
		return nil
	case <-e.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
