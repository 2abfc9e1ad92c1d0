package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/strict"
)

const (
	// maxBody is how long a request may be: a response of an agent, and room to quote it.
	maxBody = 4 << 20
	// bodyTimeout is how long a request may take to arrive.
	bodyTimeout = 30 * time.Second
)

// failure is an error with the status it is answered with.
type failure struct {
	status int
	detail string
}

func (f *failure) Error() string { return f.detail }

// Status is for pages, which answer with it too.
func (f *failure) Status() int { return f.status }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// errEnding is the error of who comes, or still waits, when the server ends.
var errEnding = fail(http.StatusServiceUnavailable, "the server is ending")

// handler answers a request, or returns an error that is the answer.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h(w, r)
	if _, known := errors.AsType[*failure](err); err != nil && !known && r.Context().Err() != nil {
		err = errEnding // Or they have gone, and do not care.
	}
	if err != nil {
		reply(w, err)
	}
}

// reply answers with an error.
func reply(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if f, ok := errors.AsType[*failure](err); ok {
		status = f.status
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "10")
	}
	if o, ok := w.(*observed); ok {
		o.detail = err.Error()
	}
	_ = writeJSON(w, status, Mistake{err.Error()})
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // Nobody is there to be told.
	return nil
}

// decode reads the body of a request. Fields that it does not know are refused: who misspells a limit
// is not to run without it. An empty body is an empty object.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return bodyError(err)
	}
	return decodeText(b, v)
}

// decodeText reads a text as decode reads a body.
func decodeText(b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fail(http.StatusUnprocessableEntity, "the body cannot be read: %s%s",
			strings.TrimPrefix(err.Error(), "json: "), suggest(err, v))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail(http.StatusUnprocessableEntity, "the body cannot be read: there is something behind the object")
	}
	return nil
}

// bodyError tells of a body that could not be read to its end.
func bodyError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fail(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes", maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fail(http.StatusRequestTimeout, "the body took too long to arrive")
	}
	return fail(http.StatusBadRequest, "the body cannot be read: %v", err)
}

// suggest names the field that was meant.
func suggest(err error, v any) string {
	_, name, ok := strings.Cut(err.Error(), "unknown field ")
	if !ok {
		return ""
	}
	if near := strict.Nearest(strings.Trim(name, `"`), fieldNames(v)); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Sprintf("; there are %s", strings.Join(fieldNames(v), ", "))
}
