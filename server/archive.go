package server

import (
	"net/http"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// serve answers a request about a session that has ended. Part is the end of the path.
func (a *Archive) serve(part string, w http.ResponseWriter, r *http.Request) error {
	switch part {
	case "":
		return writeJSON(w, http.StatusOK, a.Session)
	case "problem":
		if a.Problem == nil {
			return neverBegan(a.Session)
		}
		return writeJSON(w, http.StatusOK, a.Problem)
	case "observation":
		return writeJSON(w, http.StatusOK, a.Last)
	case "outcome":
		return writeOutcome(w, a.outcome)
	case "questions":
		return writeJSON(w, http.StatusOK, []session.Approval{})
	case "events":
		return a.serveEvents(w, r)
	case "record":
		return a.serveRecord(w, r)
	}
	if _, err := a.outcome(); err != nil {
		return err
	}
	return fail(http.StatusConflict, "the session is over; its outcome tells how it went")
}

// serveRecord answers with the event log.
func (a *Archive) serveRecord(w http.ResponseWriter, r *http.Request) error {
	o, err := a.outcome()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	http.ServeFile(w, r, o.Record)
	return nil
}

// serveEvents streams the events of the record.
func (a *Archive) serveEvents(w http.ResponseWriter, r *http.Request) error {
	o, err := a.outcome()
	if err != nil {
		return err
	}
	rec, err := record.Read(o.Record)
	if err != nil {
		return fail(http.StatusGone, "the record cannot be read: %v", err)
	}
	f := newFeed()
	f.end(rec)
	return f.serve(w, r)
}
