package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"golang.org/x/time/rate"
)

const (
	// refusalRate is how many refusals a second are logged; a flood of them must not fill a disk.
	refusalRate  = 10
	refusalBurst = 100
	// maxDetail is how much of an error is logged.
	maxDetail = 200
)

// journal is the server's log.
type journal struct {
	*slog.Logger
	limit  *rate.Limiter
	missed atomic.Int64
}

func newJournal(l *slog.Logger) *journal {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return &journal{Logger: l, limit: rate.NewLimiter(refusalRate, refusalBurst)}
}

// refused logs a request that was answered with an error.
func (j *journal) refused(r *http.Request, c *caller, status int, detail string) {
	if !j.limit.Allow() {
		j.missed.Add(1)
		return
	}
	if len(detail) > maxDetail {
		detail = detail[:maxDetail] + "..."
	}
	path := r.URL.Path
	if len(path) > maxDetail {
		path = path[:maxDetail] + "..."
	}
	args := []any{"status", status, "method", r.Method, "path", path, "from", r.RemoteAddr, "detail", detail}
	if c != nil && c.owns != "" {
		args = append(args, "token_of", c.owns)
	}
	if n := j.missed.Swap(0); n > 0 {
		args = append(args, "not_logged_before", n)
	}
	j.Warn("refused", args...)
}

// observed is an answer of which the log will tell, if it is an error.
type observed struct {
	http.ResponseWriter
	status int
	detail string
}

func (o *observed) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
