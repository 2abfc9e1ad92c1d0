package astronomy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	visitCost    = 2 * time.Millisecond // of CPU, for one thing that a user does
	visitTimeout = 30 * time.Second
	leastThought = time.Second // between two things that a user does
	mostThought  = 10 * time.Second
	mostUsers    = 1000
	// floodPause is between two requests of a flood, so that a flood is one and not a burst.
	floodPause = 10 * time.Millisecond
)

// loadgenMain is the program load-generator: users that look around and buy, as Locust's environment variables say.
func loadgenMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "load-generator")
	if err != nil {
		return err
	}
	defer s.Close()
	g := &loadgen{
		s: s, host: strings.TrimSuffix(cmp.Or(env.Getenv("LOCUST_HOST"), "http://frontend-proxy:8080"), "/"),
		client: s.HTTPClient(visitTimeout), plain: &http.Client{Transport: env.HTTPTransport(), Timeout: flagTimeout},
		began: env.Since(), stats: map[string]*visits{},
	}
	defer g.plain.CloseIdleConnections()
	users, err1 := count(env, "LOCUST_USERS", 10)
	rate, err2 := count(env, "LOCUST_SPAWN_RATE", 1)
	if err := cmp.Or(err1, err2); err != nil {
		return s.Fatal(ctx, "cannot start", err)
	}
	running, cancel := context.WithCancel(ctx)
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer cancel()
	if autostart := env.Getenv("LOCUST_AUTOSTART"); autostart == "" || autostart == "true" {
		browsers := env.Getenv("LOCUST_BROWSER_TRAFFIC_ENABLED") == "true"
		g.remember(users, browsers)
		crowd.Go(func() { g.spawn(running, &crowd, users, rate, browsers) })
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", g.page)
	mux.HandleFunc("GET /stats/requests", g.report)
	address := ":" + cmp.Or(env.Getenv("LOCUST_WEB_PORT"), "8089")
	s.Log.Info("Starting web interface", slog.String("address", address))
	return s.ServeHTTP(ctx, mux, address)
}

// count is a number that a variable has.
func count(env *kit.Env, variable string, otherwise int) (int, error) {
	text := env.Getenv(variable)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostUsers {
		return 0, fmt.Errorf("%s is %q: want a number from 1 to %d", variable, text, mostUsers)
	}
	return n, nil
}

// loadgen is what all users share.
type loadgen struct {
	s      *service.Service
	host   string
	client *http.Client
	plain  *http.Client // for questions that no user asks
	began  time.Time    // the container, too

	mu    sync.Mutex
	users int
	stats map[string]*visits
}

// visits are what came of the requests for one thing.
type visits struct {
	requests, failures int64
	spent              time.Duration
	recent             []time.Time // of the last seconds
}

// recentVisits is the time over which the current rate is told.
const recentVisits = 10 * time.Second

// spawn brings the users, some each second.
func (g *loadgen) spawn(ctx context.Context, crowd *sync.WaitGroup, users, rate int, browsers bool) {
	g.s.Log.Info("Ramping to users", slog.Int("users", users), slog.Int("spawn_rate", rate))
	for i := range users {
		u := &shopper{g: g, id: uuid.NewString(), tasks: tasksOf(i, browsers)}
		g.mu.Lock()
		g.users++
		g.mu.Unlock()
		crowd.Go(func() { u.live(ctx) })
		if (i+1)%rate == 0 && !pause(ctx, time.Second) {
			return
		}
	}
}

// tasksOf are what a user does: if there are browsers, every other one has one.
func tasksOf(user int, browsers bool) []task {
	if browsers && user%2 == 1 {
		return browserTasks
	}
	return apiTasks
}

// pause waits, and reports whether the context is still good.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// counted notes what came of a request.
func (g *loadgen) counted(name string, took time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.stats[name]
	if v == nil {
		v = &visits{}
		g.stats[name] = v
	}
	now := time.Now()
	v.requests++
	v.spent += took
	v.recent = append(v.recent, now)
	v.trim(now)
	if err != nil {
		v.failures++
	}
}

// trim forgets what is not recent.
func (v *visits) trim(now time.Time) {
	i := slices.IndexFunc(v.recent, func(t time.Time) bool { return now.Sub(t) < recentVisits })
	if i < 0 {
		i = len(v.recent)
	}
	v.recent = slices.Delete(v.recent, 0, i)
}

// entry is a line of the report, in Locust's words.
type entry struct {
	Name        string  `json:"name"`
	Requests    int64   `json:"num_requests"`
	Failures    int64   `json:"num_failures"`
	Average     float64 `json:"avg_response_time"` // ms
	CurrentRate float64 `json:"current_rps"`
}

// entries are the lines of the report, the last for all together.
func (g *loadgen) entries() (list []entry, users int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, all, spent := time.Now(), entry{Name: "Aggregated"}, time.Duration(0)
	for name, v := range g.stats {
		v.trim(now)
		e := entry{
			name, v.requests, v.failures, float64(v.spent.Milliseconds()) / float64(v.requests),
			float64(len(v.recent)) / min(recentVisits.Seconds(), max(1, now.Sub(g.began).Seconds())),
		}
		list = append(list, e)
		all.Requests, all.Failures, all.CurrentRate = all.Requests+e.Requests, all.Failures+e.Failures,
			all.CurrentRate+e.CurrentRate
		spent += v.spent
	}
	if all.Requests > 0 {
		all.Average = float64(spent.Milliseconds()) / float64(all.Requests)
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	return append(list, all), g.users
}

func (g *loadgen) report(w http.ResponseWriter, _ *http.Request) {
	list, users := g.entries()
	total := list[len(list)-1]
	ratio := 0.0
	if total.Requests > 0 {
		ratio = float64(total.Failures) / float64(total.Requests)
	}
	reply(w, map[string]any{
		"state": "running", "user_count": users, "total_rps": total.CurrentRate, "fail_ratio": ratio, "stats": list,
	})
}

func (g *loadgen) page(w http.ResponseWriter, _ *http.Request) {
	list, users := g.entries()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "%d users of %s\n\n%-40s %10s %10s %10s %10s\n", users, g.host, "Name", "# reqs", "# fails",
		"Avg ms", "req/s")
	for _, e := range list {
		fmt.Fprintf(w, "%-40s %10d %10d %10.0f %10.1f\n", e.Name, e.Requests, e.Failures, e.Average, e.CurrentRate)
	}
}

// flag asks flagd for the number of a flag over OFREP, at FLAGD_OFREP_PORT. It is 0 if it cannot be had.
func (g *loadgen) flag(ctx context.Context, name string) float64 {
	host := g.s.Env.Getenv("FLAGD_HOST")
	if host == "" {
		return 0
	}
	address := "http://" + host + ":" + cmp.Or(g.s.Env.Getenv("FLAGD_OFREP_PORT"), "8016")
	var answer struct{ Value float64 }
	err := call(ctx, g.plain, address+"/ofrep/v1/evaluate/flags/"+name,
		map[string]any{"context": map[string]any{}}, &answer)
	if err != nil {
		return 0
	}
	return answer.Value
}

// get asks for a page or for data under a name, and wants success.
func (g *loadgen) get(ctx context.Context, name, path string, query url.Values, header ...string) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	_, err := g.send(ctx, http.MethodGet, name, path, nil, header...)
	return err
}

// post sends JSON.
func (g *loadgen) post(ctx context.Context, name, path string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return g.send(ctx, http.MethodPost, name, path, data)
}

func (g *loadgen) send(ctx context.Context, method, name, path string, body []byte, header ...string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	begin := time.Now()
	resp, err := g.client.Do(req)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode >= http.StatusBadRequest {
			err = fmt.Errorf("%s %s: %s", method, path, resp.Status)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	g.counted(method+" "+name, time.Since(begin), err)
	return data, err
}

// between draws a number of both bounds and what is between them.
func between(low, high int) int { return low + rand.IntN(high-low+1) }
