package flower

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

const (
	pageCost    = 300 * time.Microsecond
	predictCost = 500 * time.Microsecond

	maxBody   = 4 << 10
	runsShown = 20
)

// handler serves what users do: start runs, look at them, and have pictures read.
func (a *serverapp) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", page.New(html))
	mux.HandleFunc("GET /ready", a.ready)
	a.s.HandleFunc(mux, "POST /runs", "/runs", pageCost, a.start)
	a.s.HandleFunc(mux, "GET /runs", "/runs", pageCost, a.list)
	a.s.HandleFunc(mux, "GET /runs/{id}", "/runs/{id}", pageCost, a.show)
	a.s.HandleFunc(mux, "GET /nodes", "/nodes", pageCost, a.showNodes)
	a.s.HandleFunc(mux, "POST /predict", "/predict", predictCost, a.predict)
	return mux
}

// shownRun is a run in answers.
type shownRun struct {
	ID       string       `json:"run_id"`
	Status   string       `json:"status"`
	Details  string       `json:"details,omitempty"`
	Rounds   []shownRound `json:"rounds"`
	Pending  time.Time    `json:"pending_at"`
	Finished *time.Time   `json:"finished_at,omitempty"`
}

// shownRound is a round in answers.
type shownRound struct {
	Round    int32   `json:"round"`
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	Results  int32   `json:"results"`
	Failures int32   `json:"failures"`
}

func shown(r *flowerpb.Run) shownRun {
	s := shownRun{
		ID: strconv.FormatUint(r.RunId, 10), Status: r.Status, Details: r.Details, Rounds: []shownRound{},
		Pending: time.UnixMilli(r.PendingAt).UTC(),
	}
	if r.FinishedAt != 0 {
		at := time.UnixMilli(r.FinishedAt).UTC()
		s.Finished = &at
	}
	for _, round := range r.Rounds {
		s.Rounds = append(s.Rounds, shownRound{round.Number, round.Loss, round.Accuracy, round.Results, round.Failures})
	}
	return s
}

// start starts a run.
func (a *serverapp) start(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Rounds int32 `json:"rounds"`
	}
	if !a.read(w, r, &asked) {
		return
	}
	started, err := a.control.StartRun(r.Context(), &flowerpb.StartRunRequest{NumRounds: asked.Rounds})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.reply(w, http.StatusCreated, map[string]string{"run_id": strconv.FormatUint(started.RunId, 10)})
}

// ready is for probes: it is well once there has been a model.
func (a *serverapp) ready(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.model == nil {
		http.Error(w, "there is no model yet", http.StatusServiceUnavailable)
	}
}

// list shows the last runs, the last one first: all, or those of a status.
func (a *serverapp) list(w http.ResponseWriter, r *http.Request) {
	of := r.FormValue("status")
	if of != "" && !slices.Contains([]string{pending, running, completed, failed}, of) {
		a.s.Log.InfoContext(r.Context(), "Asked for runs of an unknown status", slog.String("status", of))
		http.Error(w, "no run has such a status", http.StatusBadRequest)
		return
	}
	found, err := a.control.ListRuns(r.Context(), &flowerpb.ListRunsRequest{})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := []shownRun{}
	for _, run := range slices.Backward(found.Runs) {
		if len(list) < runsShown && (of == "" || of == run.Status) {
			list = append(list, shown(run))
		}
	}
	a.reply(w, http.StatusOK, list)
}

// show shows one run.
func (a *serverapp) show(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil || id == 0 {
		http.Error(w, "the ID of a run is a number", http.StatusBadRequest)
		return
	}
	found, err := a.control.ListRuns(r.Context(), &flowerpb.ListRunsRequest{RunId: id})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.reply(w, http.StatusOK, shown(found.Runs[0]))
}

// showNodes shows the parties' nodes.
func (a *serverapp) showNodes(w http.ResponseWriter, r *http.Request) {
	found, err := a.control.ListNodes(r.Context(), &flowerpb.ListNodesRequest{})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	type shownNode struct {
		Name   string `json:"name"`
		Online bool   `json:"online"`
	}
	list := []shownNode{}
	for _, n := range found.Nodes {
		list = append(list, shownNode{n.Name, n.Online})
	}
	a.reply(w, http.StatusOK, list)
}

// predict reads a picture with the model of the last run.
func (a *serverapp) predict(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Image string `json:"image"`
	}
	if !a.read(w, r, &asked) {
		return
	}
	p, ok := parse(asked.Image)
	if !ok {
		http.Error(w, "an image is 64 digits, one for each pixel, from 0 to 9", http.StatusBadRequest)
		return
	}
	model, run, err := a.latest(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	values, err := model.forward(p.pixels[:])
	if err != nil {
		a.fail(w, r, err)
		return
	}
	out := values[len(values)-1]
	digit := best(out)
	a.reply(w, http.StatusOK, map[string]any{
		"digit": digit, "probability": out[digit], "run_id": strconv.FormatUint(run, 10),
	})
}

// latest is the model of the last run that was completed, and the run.
func (a *serverapp) latest(ctx context.Context) (*network, uint64, error) {
	a.mu.Lock()
	known, run := a.model, a.from
	a.mu.Unlock()
	found, err := a.control.GetModel(ctx, &flowerpb.GetModelRequest{RunId: run})
	if err != nil || found.RunId == run {
		return known, run, err
	}
	list, err := unpack(found.Arrays)
	if err != nil {
		return nil, 0, err
	}
	model, err := newNetwork(a.task.Layers, rand.New(rand.NewPCG(0, 0)))
	if err == nil {
		err = model.load(list)
	}
	if err != nil {
		return nil, 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.model, a.from = model, found.RunId
	return model, found.RunId, nil
}

// read reads the JSON of a request, or turns it away.
func (a *serverapp) read(w http.ResponseWriter, r *http.Request, into any) bool {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		http.Error(w, "the request is not JSON as it should be: "+err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func (a *serverapp) reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // A user who has gone away gets nothing.
}

// fail answers with what the link could not do.
func (a *serverapp) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusInternalServerError
	switch status.Code(err) {
	case codes.InvalidArgument:
		code = http.StatusBadRequest
	case codes.NotFound:
		code = http.StatusNotFound
	case codes.ResourceExhausted, codes.FailedPrecondition, codes.Unavailable:
		code = http.StatusServiceUnavailable
	}
	if code >= http.StatusInternalServerError {
		a.s.Log.ErrorContext(r.Context(), "Request failed", slog.String("url", r.URL.Path), slog.Any("error", err))
	}
	http.Error(w, status.Convert(err).Message(), code)
}
