package whisk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	// RuntimePort is where a pod of an action listens.
	RuntimePort = 8080
	// lameDuck is how long a pod that was told to stop still takes invocations: some are on their way.
	lameDuck = time.Second
	// maxRuns is how many invocations run at once in a pod, whoever sends them.
	maxRuns = mostConcurrency
	// maxLogs is how many lines of an activation are kept, and maxLine how long one is.
	maxLogs, maxLine = 20, 300
)

// Program is what an action does.
type Program struct {
	Name string
	// Init is done once in each pod, before the first run, and again if it failed. It may be nil.
	Init func(ctx context.Context) error
	// Run does what is asked with some parameters, and returns an object. What the caller did wrong, or what could not
	// be done, is an error.
	Run func(ctx context.Context, in *Input) (any, error)
	// Cost is the processor time that a run takes, and InitCost what Init takes: to load the program.
	Cost, InitCost time.Duration
}

// Input is one invocation.
type Input struct {
	ActivationID string
	Params       json.RawMessage

	mu   sync.Mutex
	logs []string
}

// Logf writes a line to the log of the activation.
func (in *Input) Logf(format string, args ...any) {
	line := time.Now().UTC().Format(time.RFC3339Nano) + " stdout: " + fmt.Sprintf(format, args...)
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.logs) < maxLogs {
		in.logs = append(in.logs, line[:min(len(line), maxLine)])
	}
}

type runRequest struct {
	Value        json.RawMessage `json:"value"`
	Namespace    string          `json:"namespace"`
	ActionName   string          `json:"action_name"`
	ActivationID string          `json:"activation_id"`
	Deadline     int64           `json:"deadline"`
}

// runResponse is more than a runtime of OpenWhisk returns: the lines that such a one writes to its output, and whether
// the result is an error.
type runResponse struct {
	Result json.RawMessage `json:"result"`
	Logs   []string        `json:"logs"`
	Failed bool            `json:"failed,omitempty"`
}

// runtimeServer is the server in a pod of an action.
type runtimeServer struct {
	s *service.Service
	p Program

	initialising sync.Mutex
	failure      error // of the last initialisation, if it failed
	failed       time.Time

	mu     sync.Mutex
	ready  bool
	active int
	last   time.Time // when the last run or initialisation ended
}

// Serve runs an action until it is told to stop, and a moment longer.
func Serve(ctx context.Context, s *service.Service, p Program) error {
	r := &runtimeServer{s: s, p: p, last: time.Now()}
	mux := http.NewServeMux()
	s.HandleFunc(mux, "POST /init", "/init", p.InitCost, r.init)
	s.HandleFunc(mux, "POST /run", "/run", p.Cost, r.run)
	mux.HandleFunc("GET /status", r.status)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	told := s.Env.Notify()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		select {
		case <-told:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(lameDuck):
		case <-ctx.Done():
		}
		stop()
	})
	s.Log.Info("Waiting for invocations", "action", p.Name, "port", RuntimePort)
	return s.ServeHTTP(ctx, mux, ":"+strconv.Itoa(RuntimePort))
}

// init initialises the action, once. Who waits for an initialisation that fails is told so, and does not try another:
// it would only make others wait.
func (r *runtimeServer) init(w http.ResponseWriter, req *http.Request) {
	came := time.Now()
	r.initialising.Lock()
	defer r.initialising.Unlock()
	if r.isReady() {
		reply(w, http.StatusForbidden, map[string]string{"error": "Cannot initialize the action more than once."})
		return
	}
	if r.p.Init != nil && !r.failed.After(came) {
		r.failure = r.p.Init(req.Context())
		r.used() // Somebody needs the action, whatever came of it.
		if r.failure != nil {
			r.failed = time.Now()
			r.s.Log.ErrorContext(req.Context(), "Initialisation failed", "action", r.p.Name, "error", r.failure)
		}
	}
	if r.failure != nil {
		reply(w, http.StatusBadGateway,
			map[string]string{"error": fmt.Sprintf("The action failed to initialize: %v", r.failure)})
		return
	}
	r.mu.Lock()
	r.ready = true
	r.mu.Unlock()
	reply(w, http.StatusOK, map[string]bool{"ok": true})
}

// used notes that the pod had something to do just now.
func (r *runtimeServer) used() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
}

func (r *runtimeServer) isReady() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready
}

// enter counts a run in, if there is room for it.
func (r *runtimeServer) enter() (status int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.ready:
		return http.StatusForbidden, "The action is not initialized."
	case r.active >= maxRuns:
		return http.StatusTooManyRequests, "The pod runs as much as it can."
	}
	r.active++
	return http.StatusOK, ""
}

func (r *runtimeServer) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	r.last = time.Now()
}

func (r *runtimeServer) run(w http.ResponseWriter, req *http.Request) {
	var q runRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxBody)).Decode(&q); err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": "want a JSON object with value"})
		return
	}
	if status, why := r.enter(); why != "" {
		reply(w, status, map[string]string{"error": why})
		return
	}
	defer r.leave()
	ctx := req.Context()
	if q.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.UnixMilli(q.Deadline))
		defer cancel()
	}
	in := &Input{ActivationID: q.ActivationID, Params: q.Value}
	v, err := r.p.Run(WithCause(ctx, q.ActivationID), in)
	if err != nil {
		in.Logf("error: %v", err)
		if !errors.As(err, new(Refusal)) {
			r.s.Log.ErrorContext(ctx, "Run failed", "action", r.p.Name, "activation", q.ActivationID, "error", err)
		}
		v = map[string]string{"error": err.Error()}
	}
	result, failure := json.Marshal(v)
	if failure != nil {
		reply(w, http.StatusBadGateway, map[string]string{"error": "the result is no JSON"})
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	reply(w, http.StatusOK, runResponse{Result: result, Logs: append([]string{}, in.logs...), Failed: err != nil})
}

// status says whether the pod has something to do. It is what the pod is scaled by.
func (r *runtimeServer) status(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	st := status{Active: r.active, IdleMS: time.Since(r.last).Milliseconds()}
	r.mu.Unlock()
	reply(w, http.StatusOK, st)
}

// reply answers with JSON.
func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // Who does not read it has gone.
}

// Refusal is an error that is the caller's: what was asked for cannot be had. Nothing is wrong with the action.
type Refusal string

func (r Refusal) Error() string { return string(r) }
