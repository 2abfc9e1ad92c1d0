package jaeger

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

const (
	defaultLimit    = 100
	defaultLookback = 48 * time.Hour
)

// response is the envelope of all answers.
type response struct {
	Data   any             `json:"data"`
	Total  int             `json:"total"`
	Limit  int             `json:"limit"`
	Offset int             `json:"offset"`
	Errors []responseError `json:"errors"`
}

type responseError struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"msg"`
}

func writeError(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, response{Errors: []responseError{{code, err.Error()}}})
}

func (s *server) queryRoutes(base string) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /api/services", func(w http.ResponseWriter, _ *http.Request) {
		names := s.store.serviceNames()
		writeJSON(w, http.StatusOK, response{Data: names, Total: len(names)})
	})
	m.HandleFunc("GET /api/services/{service}/operations", func(w http.ResponseWriter, r *http.Request) {
		names := []string{}
		for _, o := range s.store.operations(r.PathValue("service"), "") {
			if len(names) == 0 || names[len(names)-1] != o.Name { // One name may have several kinds.
				names = append(names, o.Name)
			}
		}
		writeJSON(w, http.StatusOK, response{Data: names, Total: len(names)})
	})
	m.HandleFunc("GET /api/operations", s.serveOperations)
	m.HandleFunc("GET /api/traces", s.serveSearch)
	m.HandleFunc("GET /api/traces/{id}", s.serveTrace)
	m.HandleFunc("GET /api/dependencies", s.serveDependencies)
	base = strings.TrimSuffix(base, "/")
	shown := page.New(html)
	m.Handle("GET /{$}", shown)
	m.Handle("GET /search", shown)
	m.HandleFunc("GET /trace/{id}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, base+"/#trace&"+url.PathEscape(r.PathValue("id")), http.StatusFound)
	})
	if base != "" {
		return http.StripPrefix(base, m)
	}
	return m
}

func (s *server) serveOperations(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("service") == "" {
		writeError(w, http.StatusBadRequest, errors.New("parameter 'service' is required"))
		return
	}
	list := s.store.operations(q.Get("service"), q.Get("spanKind"))
	writeJSON(w, http.StatusOK, response{Data: list, Total: len(list)})
}

func (s *server) serveTrace(w http.ResponseWriter, r *http.Request) {
	id, err := parseTraceID(r.PathValue("id"))
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	list := s.store.get(id)
	if len(list) == 0 {
		writeError(w, http.StatusNotFound, errors.New("trace not found"))
		return
	}
	writeJSON(w, http.StatusOK, response{Data: list})
}

func (s *server) serveSearch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if ids := q["traceID"]; len(ids) > 0 {
		var list []traceID
		for _, text := range ids {
			id, err := parseTraceID(text)
			if err != nil {
				writeError(w, http.StatusBadRequest, err)
				return
			}
			list = append(list, id)
		}
		writeJSON(w, http.StatusOK, response{Data: s.store.get(list...)})
		return
	}
	search, err := parseQuery(q, time.Now())
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusOK, response{Data: s.store.search(search)})
}

// parseQuery reads a search. The time is that between start and end, in microseconds; without a start
// it is the lookback before the end.
func parseQuery(v url.Values, now time.Time) (query, error) {
	q := query{
		service: v.Get("service"), operation: v.Get("operation"), exclude: v["exclude"], to: now,
		limit: defaultLimit, tags: map[string]string{},
	}
	if q.service == "" {
		return q, errors.New("parameter 'service' is required")
	}
	var errs []error
	parse := func(name string, read func(string) error) {
		if s := v.Get(name); s != "" {
			if err := read(s); err != nil {
				errs = append(errs, fmt.Errorf("unable to parse param '%s': %w", name, err))
			}
		}
	}
	micros := func(t *time.Time) func(string) error {
		return func(s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			*t = time.UnixMicro(n)
			return err
		}
	}
	duration := func(d *time.Duration) func(string) error {
		return func(s string) (err error) {
			*d, err = time.ParseDuration(s)
			return err
		}
	}
	lookback := defaultLookback
	parse("end", micros(&q.to))
	parse("lookback", func(s string) error {
		if s == "custom" { // What Jaeger's own pages send with a start.
			return nil
		}
		d, err := model.ParseDuration(s)
		lookback = time.Duration(d)
		return err
	})
	q.from = q.to.Add(-lookback)
	parse("start", micros(&q.from))
	parse("minDuration", duration(&q.min))
	parse("maxDuration", duration(&q.max))
	parse("limit", func(s string) (err error) {
		q.limit, err = strconv.Atoi(s)
		return err
	})
	for _, s := range v["tag"] {
		k, value, ok := strings.Cut(s, ":")
		if !ok {
			errs = append(errs, fmt.Errorf("malformed 'tag' parameter, expecting key:value, received: %s", s))
		}
		q.tags[k] = value
	}
	for _, s := range v["tags"] {
		if err := parseTags(s, q.tags); err != nil {
			errs = append(errs, err)
		}
	}
	if q.max > 0 && q.min > q.max {
		errs = append(errs, errors.New("'maxDuration' should be greater than 'minDuration'"))
	}
	return q, errors.Join(errs...)
}

// parseTags reads a JSON object of strings, or key:value and key=value pairs.
func parseTags(s string, into map[string]string) error {
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		var tags map[string]any
		if err := json.Unmarshal([]byte(s), &tags); err != nil {
			return fmt.Errorf("malformed 'tags' parameter, cannot unmarshal JSON: %w", err)
		}
		for k, v := range tags {
			into[k] = fmt.Sprint(v)
		}
		return nil
	}
	for _, pair := range strings.FieldsFunc(s, func(r rune) bool { return r == '|' || r == ' ' || r == ',' }) {
		i := strings.IndexAny(pair, ":=")
		if i < 0 {
			return fmt.Errorf("malformed 'tags' parameter, expecting JSON or key:value, received: %s", s)
		}
		into[pair[:i]] = pair[i+1:]
	}
	return nil
}

// serveDependencies takes milliseconds: endTs, and lookback before it.
func (s *server) serveDependencies(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	to, lookback := time.Now(), 24*time.Hour
	if text := q.Get("endTs"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			writeError(w, http.StatusBadRequest, fmt.Errorf("unable to parse param 'endTs': %w", err))
			return
		}
		to = time.UnixMilli(n)
	}
	if text := q.Get("lookback"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			writeError(w, http.StatusBadRequest, fmt.Errorf("unable to parse param 'lookback': %w", err))
			return
		}
		lookback = time.Duration(n) * time.Millisecond
	}
	list := s.store.links(to.Add(-lookback), to)
	if service := q.Get("service"); service != "" {
		kept := []link{}
		for _, l := range list {
			if l.Parent == service || l.Child == service {
				kept = append(kept, l)
			}
		}
		list = kept
	}
	writeJSON(w, http.StatusOK, response{Data: list})
}
