package prometheus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/stats"
)

// The API's code is ours because Prometheus' own links the OpenTelemetry collector and an OpenAPI
// library: 12 MB, and a minute and a half of compilation. What it answers is theirs.

// maxPoints is how many points a range query may have per series.
const maxPoints = 11_000

// answer is what a request leads to.
type answer struct {
	data     any
	warnings annotations.Annotations
	query    string // to show where in it a warning belongs
}

// apiError is an error with its class in the API.
type apiError struct {
	kind string
	code int
	err  error
}

func (e *apiError) Error() string { return e.err.Error() }

func badData(err error) error { return &apiError{"bad_data", http.StatusBadRequest, err} }

func badParam(name string, err error) error {
	return badData(fmt.Errorf("invalid parameter %q: %w", name, err))
}

// execError classifies what evaluation can fail with.
func execError(err error) error {
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var broken promql.ErrStorage
	switch {
	case errors.As(err, &timeout):
		return &apiError{"timeout", http.StatusServiceUnavailable, err}
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &apiError{"canceled", 499, err}
	case errors.As(err, &broken):
		return &apiError{"internal", http.StatusInternalServerError, err}
	}
	return &apiError{"execution", http.StatusUnprocessableEntity, err}
}

func (s *server) apiRoutes() http.Handler {
	m := http.NewServeMux()
	handle := func(path string, f func(*http.Request) (*answer, error), methods ...string) {
		for _, method := range append(methods, http.MethodGet) {
			m.HandleFunc(method+" /api/v1"+path, s.whenReady(func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseForm(); err != nil {
					respondError(w, badData(fmt.Errorf("error parsing form values: %w", err)))
					return
				}
				a, err := f(r)
				if err != nil {
					respondError(w, err)
					return
				}
				respond(w, a)
			}))
		}
	}
	handle("/query", s.query, http.MethodPost)
	handle("/query_range", s.queryRange, http.MethodPost)
	handle("/format_query", s.formatQuery, http.MethodPost)
	handle("/labels", s.labelNames, http.MethodPost)
	handle("/label/{name}/values", s.labelValues)
	handle("/series", s.series, http.MethodPost)
	handle("/targets", s.serveTargets)
	handle("/scrape_pools", s.serveScrapePools)
	handle("/metadata", s.serveMetadata)
	handle("/rules", s.serveRules)
	handle("/alerts", s.serveAlerts)
	handle("/alertmanagers", func(*http.Request) (*answer, error) {
		return &answer{data: map[string]any{"activeAlertmanagers": []any{}, "droppedAlertmanagers": []any{}}}, nil
	})
	handle("/status/config", s.statusConfig)
	handle("/status/flags", func(*http.Request) (*answer, error) { return &answer{data: s.opts.all}, nil })
	handle("/status/buildinfo", s.statusBuild)
	handle("/status/runtimeinfo", s.statusRuntime)
	handle("/status/tsdb", s.statusTSDB)
	return m
}

type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

func respond(w http.ResponseWriter, a *answer) {
	warnings, infos := a.warnings.AsStrings(a.query, 10, 10)
	writeJSON(w, http.StatusOK, response{Status: "success", Data: a.data, Warnings: warnings, Infos: infos})
}

func respondError(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = &apiError{"internal", http.StatusInternalServerError, err}
	}
	writeJSON(w, e.code, response{Status: "error", ErrorType: e.kind, Error: e.Error()})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(b)
}

// queryData is the answer to a query.
type queryData struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     parser.Value     `json:"result"`
	Stats      stats.QueryStats `json:"stats,omitempty"`
}

func (s *server) query(r *http.Request) (*answer, error) {
	at, err := timeParam(r, "time", time.Now())
	if err != nil {
		return nil, err
	}
	return s.evaluate(r, func(ctx context.Context, o promql.QueryOpts, expr string) (promql.Query, error) {
		return s.engine.NewInstantQuery(ctx, s.data, o, expr, at)
	})
}

func (s *server) queryRange(r *http.Request) (*answer, error) {
	start, err := parseTime(r.Form.Get("start"))
	if err != nil {
		return nil, badParam("start", err)
	}
	end, err := parseTime(r.Form.Get("end"))
	if err != nil {
		return nil, badParam("end", err)
	}
	if end.Before(start) {
		return nil, badParam("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseDuration(r.Form.Get("step"))
	if err != nil {
		return nil, badParam("step", err)
	}
	if step <= 0 {
		return nil, badParam("step", errors.New(
			"zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if end.Sub(start)/step > maxPoints {
		return nil, badData(errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing " +
			"the query resolution (?step=XX)"))
	}
	return s.evaluate(r, func(ctx context.Context, o promql.QueryOpts, expr string) (promql.Query, error) {
		return s.engine.NewRangeQuery(ctx, s.data, o, expr, start, end, step)
	})
}

// evaluate runs a query within the limits the request sets.
func (s *server) evaluate(r *http.Request,
	prepare func(context.Context, promql.QueryOpts, string) (promql.Query, error),
) (*answer, error) {
	limit, err := limitParam(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	if text := r.Form.Get("timeout"); text != "" {
		d, err := parseDuration(text)
		if err != nil {
			return nil, badParam("timeout", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	var lookback time.Duration
	if text := r.Form.Get("lookback_delta"); text != "" {
		if lookback, err = parseDuration(text); err != nil {
			return nil, badData(fmt.Errorf("error parsing lookback delta duration: %w", err))
		}
	}
	expr := r.Form.Get("query")
	q, err := prepare(ctx, promql.NewPrometheusQueryOpts(r.Form.Get("stats") == "all", lookback), expr)
	if err != nil {
		return nil, badParam("query", err)
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, execError(res.Err)
	}
	value, truncated := truncate(res.Value, limit)
	if truncated {
		res.Warnings.Add(errTruncated)
	}
	data := queryData{ResultType: value.Type(), Result: value}
	if r.Form.Get("stats") != "" {
		data.Stats = stats.NewQueryStats(q.Stats())
	}
	b, err := json.Marshal(data) // Closing the query takes the result's memory back.
	if err != nil {
		return nil, err
	}
	return &answer{json.RawMessage(b), res.Warnings, expr}, nil
}

var errTruncated = errors.New("results truncated due to limit")

// truncate cuts a result to a number of series, unless that is 0. An empty result is not nil, which
// JSON would have as null.
func truncate(v parser.Value, limit int) (parser.Value, bool) {
	switch x := v.(type) {
	case promql.Vector:
		if x == nil {
			return promql.Vector{}, false
		}
		if limit > 0 && len(x) > limit {
			return x[:limit], true
		}
	case promql.Matrix:
		if x == nil {
			return promql.Matrix{}, false
		}
		if limit > 0 && len(x) > limit {
			return x[:limit], true
		}
	}
	return v, false
}

func (s *server) formatQuery(r *http.Request) (*answer, error) {
	e, err := s.parser.ParseExpr(r.Form.Get("query"))
	if err != nil {
		return nil, badParam("query", err)
	}
	return &answer{data: e.Pretty(0)}, nil
}

// selection is what label and series requests are about.
type selection struct {
	matchers   [][]*labels.Matcher // nil is everything
	start, end int64
	limit      int
}

func (s *server) selection(r *http.Request) (sel selection, err error) {
	start, err := timeParam(r, "start", time.UnixMilli(math.MinInt64/2))
	if err != nil {
		return sel, err
	}
	end, err := timeParam(r, "end", time.UnixMilli(math.MaxInt64/2))
	if err != nil {
		return sel, err
	}
	sel.start, sel.end = timestamp.FromTime(start), timestamp.FromTime(end)
	if sel.limit, err = limitParam(r); err != nil {
		return sel, err
	}
	for _, text := range r.Form["match[]"] {
		m, err := s.parser.ParseMetricSelector(text)
		if err != nil {
			return sel, badParam("match[]", err)
		}
		if !slices.ContainsFunc(m, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return sel, badParam("match[]", errors.New("match[] must contain at least one non-empty matcher"))
		}
		sel.matchers = append(sel.matchers, m)
	}
	return sel, nil
}

// names collects strings for all matchers, sorted and up to the limit.
func (s *server) names(r *http.Request, get func(context.Context, storage.Querier, *storage.LabelHints,
	[]*labels.Matcher) ([]string, annotations.Annotations, error),
) (*answer, error) {
	sel, err := s.selection(r)
	if err != nil {
		return nil, err
	}
	q, err := s.data.Querier(sel.start, sel.end)
	if err != nil {
		return nil, execError(err)
	}
	defer q.Close()
	if sel.matchers == nil {
		sel.matchers = [][]*labels.Matcher{nil}
	}
	var warnings annotations.Annotations
	list := []string{}
	for _, m := range sel.matchers {
		found, w, err := get(r.Context(), q, &storage.LabelHints{}, m)
		if err != nil {
			return nil, execError(err)
		}
		warnings.Merge(w)
		for _, name := range found {
			list = append(list, strings.Clone(name)) // The querier takes its memory back.
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if sel.limit > 0 && len(list) > sel.limit {
		list = list[:sel.limit]
		warnings.Add(errTruncated)
	}
	return &answer{data: list, warnings: warnings}, nil
}

func (s *server) labelNames(r *http.Request) (*answer, error) {
	return s.names(r, func(ctx context.Context, q storage.Querier, h *storage.LabelHints,
		m []*labels.Matcher,
	) ([]string, annotations.Annotations, error) {
		return q.LabelNames(ctx, h, m...)
	})
}

func (s *server) labelValues(r *http.Request) (*answer, error) {
	name := r.PathValue("name")
	if !model.UTF8Validation.IsValidLabelName(name) {
		return nil, badData(fmt.Errorf("invalid label name: %q", name))
	}
	return s.names(r, func(ctx context.Context, q storage.Querier, h *storage.LabelHints,
		m []*labels.Matcher,
	) ([]string, annotations.Annotations, error) {
		return q.LabelValues(ctx, name, h, m...)
	})
}

func (s *server) series(r *http.Request) (*answer, error) {
	if len(r.Form["match[]"]) == 0 {
		return nil, badData(errors.New("no match[] parameter provided"))
	}
	sel, err := s.selection(r)
	if err != nil {
		return nil, err
	}
	q, err := s.data.Querier(sel.start, sel.end)
	if err != nil {
		return nil, execError(err)
	}
	defer q.Close()
	hints := &storage.SelectHints{Start: sel.start, End: sel.end, Func: "series"} // No samples are needed.
	var sets []storage.SeriesSet
	for _, m := range sel.matchers {
		sets = append(sets, q.Select(r.Context(), true, hints, m...))
	}
	set := storage.NewMergeSeriesSet(sets, 0, storage.ChainedSeriesMerge)
	list := []labels.Labels{}
	warnings := set.Warnings()
	for set.Next() {
		if sel.limit > 0 && len(list) == sel.limit {
			warnings.Add(errTruncated)
			break
		}
		list = append(list, set.At().Labels().Copy())
	}
	if err := cmp.Or(set.Err(), r.Context().Err()); err != nil {
		return nil, execError(err)
	}
	return &answer{data: list, warnings: warnings}, nil
}

func timeParam(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.Form.Get(name)
	if text == "" {
		return otherwise, nil
	}
	t, err := parseTime(text)
	if err != nil {
		return t, badParam(name, err)
	}
	return t, nil
}

func limitParam(r *http.Request) (int, error) {
	text := r.Form.Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && n < 0 {
		err = errors.New("limit must be non-negative")
	}
	if err != nil {
		return 0, badParam("limit", err)
	}
	return n, nil
}

// parseTime reads seconds since the epoch or RFC 3339.
func parseTime(s string) (time.Time, error) {
	if t, err := strconv.ParseFloat(s, 64); err == nil {
		sec, frac := math.Modf(t)
		return time.Unix(int64(sec), int64(math.Round(frac*1000))*int64(time.Millisecond)).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
}

// parseDuration reads seconds or a duration such as 5m.
func parseDuration(s string) (time.Duration, error) {
	if d, err := strconv.ParseFloat(s, 64); err == nil {
		if d *= float64(time.Second); math.Abs(d) < math.MaxInt64 {
			return time.Duration(d), nil
		}
		return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", s)
	}
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot parse %q to a valid duration", s)
}
