package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aiopslab/aiopslab/internal/logs"
)

const (
	// refusalRate is how many refusals a second are logged; a flood of them must not fill a disk.
	refusalRate  = 10
	refusalBurst = 100
	// maxDetail is how much of an error is logged.
	maxDetail = 200
	// requestID is the header with the id of a request.
	requestID = "X-Request-Id"
)

// journal is the server's log.
type journal struct {
	*slog.Logger
	limit  *rate.Limiter
	missed atomic.Int64
	secret func(word string) bool // whether a word is a token
}

func newJournal(l *slog.Logger, secret func(word string) bool) *journal {
	return &journal{Logger: logs.Or(l), limit: rate.NewLimiter(refusalRate, refusalBurst), secret: secret}
}

// answered logs how a request was answered: each at level debug, and errors in any case, but for a
// flood of them.
func (j *journal) answered(r *http.Request, c *caller, o *observed) {
	level := slog.LevelDebug
	if o.status >= http.StatusBadRequest {
		level = slog.LevelWarn
	}
	ctx := r.Context()
	if !j.Enabled(ctx, level) {
		return
	}
	if level == slog.LevelWarn && !j.limit.Allow() {
		j.missed.Add(1)
		return
	}
	args := []any{
		"request", idOf(ctx), "status", cmp.Or(o.status, http.StatusOK), "method", j.line(r.Method), "path",
		j.line(r.URL.Path), "from", r.RemoteAddr, "took", time.Since(o.begun).Round(time.Microsecond),
	}
	if c.owns != nil {
		args = append(args, "token_of", c.own())
	}
	if level == slog.LevelDebug {
		j.Debug("answered", args...)
		return
	}
	if n := j.missed.Swap(0); n > 0 {
		args = append(args, "not_logged_before", n)
	}
	j.Warn("refused", append(args, "detail", j.line(o.detail))...)
}

// words are what a token can be found among.
var words = regexp.MustCompile(`[A-Za-z0-9_-]{8,}`)

// line is a text of a caller as it is logged: not too long, and without a token, which belongs into no
// path, but one never knows.
func (j *journal) line(text string) string {
	text = text[:min(len(text), 4*maxDetail)]
	text = words.ReplaceAllStringFunc(text, func(w string) string { // Before it is cut: half a token is one, too.
		if j.secret(w) {
			return "[secret]"
		}
		return w
	})
	if len(text) > maxDetail {
		text = text[:maxDetail] + "..."
	}
	return text
}

// saneID is what an id of a caller's may look like.
var saneID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

type requestKey struct{}

// named gives a request its id, the caller's if that can be one, and tells it in the answer.
func (j *journal) named(w http.ResponseWriter, r *http.Request) *http.Request {
	id := r.Header.Get(requestID)
	if !saneID.MatchString(id) || j.line(id) != id {
		id = strings.ToLower(rand.Text()[:12])
	}
	w.Header().Set(requestID, id)
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
}

// idOf is the id of the request that something is done for.
func idOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// observed is an answer of which the log will tell.
type observed struct {
	http.ResponseWriter
	begun  time.Time
	status int
	detail string // of an error
}

func (o *observed) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
