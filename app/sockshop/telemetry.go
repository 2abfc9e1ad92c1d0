package sockshop

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// buckets of request_duration_seconds.
var buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// maxPaths is how many paths the front-end tells apart in its metrics. It takes those that users send.
const maxPaths = 200

// path is the path of a pattern of a ServeMux.
func path(pattern string) string {
	if _, p, ok := strings.Cut(pattern, " "); ok {
		pattern = p
	}
	return strings.TrimSuffix(pattern, "{$}")
}

// timed has all requests counted in request_duration_seconds, with the labels that the original has. They differ from
// family to family, and in the first version of catalogue they have the wrong names.
func (s *server) timed() http.Handler {
	labels := []string{"service", "method", "route", "status_code"}
	if s.flavour == golang && s.version != shiftedVersion {
		labels = []string{"method", "route", "status_code", "isWS"}
	}
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "request_duration_seconds", Help: "Time (in seconds) spent serving HTTP requests.", Buckets: buckets,
	}, labels)
	s.Registerer().MustRegister(duration)
	var mu sync.Mutex
	paths := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		s.mux.ServeHTTP(rec, r)
		if strings.HasSuffix(r.Pattern, "/metrics") || r.Pattern == "" {
			return
		}
		code, values := strconv.Itoa(rec.status), []string(nil)
		switch s.flavour {
		case golang:
			values = []string{r.Method, label(path(r.Pattern)), code, "false"}
		case java:
			values = []string{s.name, r.Method, path(r.Pattern), code}
		default:
			p := strings.ToLower(r.URL.Path)
			mu.Lock()
			if !paths[p] && len(paths) >= maxPaths {
				p = "other"
			}
			paths[p] = true
			mu.Unlock()
			values = []string{s.name, strings.ToLower(r.Method), p, code}
		}
		took := time.Since(start)
		duration.WithLabelValues(values...).Observe(took.Seconds())
		if s.counted != nil {
			s.counted(r, took)
		}
	})
}

// label is a path as the value of a label: catalogue_id.
func label(path string) string {
	words := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if len(words) == 0 {
		return "root"
	}
	return strings.Join(words, "_")
}

type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.status = code
	r.ResponseWriter.WriteHeader(code)
}

// healthTimeout is how long a store may take to show that it is there.
const healthTimeout = time.Second

// healthCost is next to nothing, but waits for its turn like everything else.
const healthCost = 200 * time.Microsecond

// well serves /health, which is 200 whatever is wrong: a store that is lost only shows in the body.
func (s *server) well(store string, ask func(ctx context.Context) error) {
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		type entry struct {
			Service string `json:"service"`
			Status  string `json:"status"`
			Time    string `json:"time"`
		}
		if s.Env.CPU.Use(r.Context(), healthCost) != nil {
			return
		}
		now := time.Now().UTC().Format(time.RFC3339Nano)
		list := []entry{{s.name, "OK", now}}
		if store != "" {
			ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
			defer cancel()
			status := "OK"
			if ask(ctx) != nil {
				status = "err"
			}
			list = append(list, entry{store, status, now})
		}
		answer(w, http.StatusOK, object{"health": list})
	})
}

// ping asks a MongoDB database whether it is there.
func ping(db *mongo.Database) func(context.Context) error {
	return func(ctx context.Context) error {
		return db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
	}
}
