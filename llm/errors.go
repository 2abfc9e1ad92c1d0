package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrUnavailable is the error of a model that cannot be asked: it is down or busy, the key is
	// refused, or the request is not to its liking. Whoever asks is not to blame.
	ErrUnavailable = errors.New("the model is unavailable")
	// ErrTooLong is the error of a request that does not fit into the model's window.
	ErrTooLong = errors.New("the conversation is longer than the model's window")
	// ErrBudget is the error of a request for which the budget is too small.
	ErrBudget = errors.New("the budget is spent")
)

// Failure is an attempt that failed. It is ErrTooLong or ErrUnavailable.
type Failure struct {
	Status  int    // of HTTP; 0 if there was no answer
	Code    string // the provider's
	Message string
	// After is how long the provider asks to be left alone; negative if it does not say.
	After time.Duration
	Cause error // may be nil
}

func (f *Failure) Error() string {
	what := cmp.Or(f.Message, f.Code)
	if f.Cause != nil {
		what = strings.TrimPrefix(what+": "+f.Cause.Error(), ": ")
	}
	if f.Status != 0 {
		what = strings.TrimSuffix(fmt.Sprintf("%d %s: %s", f.Status, http.StatusText(f.Status), what), ": ")
	}
	return what
}

// Unwrap returns the class, and the cause.
func (f *Failure) Unwrap() []error {
	class := ErrUnavailable
	if f.tooLong() {
		class = ErrTooLong
	}
	if f.Cause == nil {
		return []error{class}
	}
	return []error{class, f.Cause}
}

// contextLength is OpenAI's code for a conversation that does not fit.
const contextLength = "context_length_exceeded"

// overlong is how endpoints say that a conversation does not fit.
var overlong = regexp.MustCompile(
	`(?i)maximum context length|context (length|window|size)|prompt is too long|input is too long|too many tokens`)

func (f *Failure) tooLong() bool {
	switch f.Status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return f.Code == contextLength || overlong.MatchString(f.Message)
	}
	return f.Code == contextLength
}

// Temporary reports whether it may help to ask again.
func (f *Failure) Temporary() bool {
	switch {
	case f.Code == "insufficient_quota", f.Code == contextLength: // Whatever the status.
		return false
	case f.Status == 0, f.Status == http.StatusOK: // No answer, or one that was cut.
		return true
	}
	return f.Status == http.StatusRequestTimeout || f.Status == http.StatusConflict ||
		f.Status == http.StatusTooManyRequests || f.Status >= http.StatusInternalServerError
}

// Refused reports whether a filter of the provider refused the request or the reply.
func (f *Failure) Refused() bool {
	return f.Status == http.StatusBadRequest && (f.Code == "content_filter" || f.Code == "content_policy_violation")
}

// NewFailure makes a failure from an HTTP answer that is not a success.
func NewFailure(res *http.Response, code, message string) *Failure {
	return &Failure{Status: res.StatusCode, Code: code, Message: message, After: retryAfter(res.Header, time.Now())}
}

// retryAfter is how long an endpoint asks to be left alone, in seconds or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return -1
}

var (
	limitTooLarge = regexp.MustCompile(`(?i)max_(completion_)?tokens.*(too large|at most|exceed|> ?\d)`)
	limitNumber   = regexp.MustCompile(`(?i)(?:at most|>) ?(\d+)`)
)

// leastLimit is the least limit of a reply that is tried.
const leastLimit = 256

// SmallerLimit returns the limit of a reply to try next, if a failure is about the limit that was asked
// for being more than the model can do.
func (f *Failure) SmallerLimit(asked int) (limit int, ok bool) {
	if f.Status != http.StatusBadRequest || asked <= leastLimit || !limitTooLarge.MatchString(f.Message) {
		return 0, false
	}
	limit = asked / 2
	if m := limitNumber.FindStringSubmatch(f.Message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 && n < asked {
			limit = n
		}
	}
	return limit, true
}

// Brief is the beginning of an answer that cannot be read, on one line.
func Brief(text []byte) string {
	const most = 200
	s := strings.Join(strings.Fields(string(text)), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return s
}
