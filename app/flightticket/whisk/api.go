package whisk

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxInFlight is how many invocations a controller has under way, waiting ones included.
	maxInFlight = 512
	// blockingWait is how long a blocking invocation is waited for; after that the caller is told its ID.
	blockingWait = 30 * time.Second
	requestCost  = 150 * time.Microsecond
	// defaultList and maxList are how many activations are listed.
	defaultList, maxList = 30, 200
)

//go:embed page.html
var page []byte

// handler is the API.
func (c *controller) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern, path string, h http.HandlerFunc) {
		const prefix = "/api/v1/namespaces/{namespace}"
		own := func(w http.ResponseWriter, r *http.Request) {
			if ns := r.PathValue("namespace"); ns != "_" && ns != guest {
				refuse(w, http.StatusForbidden, "the supplied authentication is not authorized to access this resource")
				return
			}
			h(w, r)
		}
		c.s.HandleFunc(mux, pattern+" "+prefix+path, prefix+path, requestCost, own)
	}
	handle("POST", "/actions/{action}", c.take)
	handle("GET", "/actions", c.listActions)
	handle("GET", "/actions/{action}", c.getAction)
	handle("GET", "/activations", c.listActivations)
	record := func(path string, part func(*Activation) any) {
		handle("GET", "/activations/{id}"+path, func(w http.ResponseWriter, r *http.Request) {
			a := c.store.get(r.Context(), r.PathValue("id"))
			if a == nil {
				refuse(w, http.StatusNotFound, errUnknown.Error())
				return
			}
			reply(w, http.StatusOK, part(a))
		})
	}
	record("", func(a *Activation) any { return a })
	record("/logs", func(a *Activation) any { return map[string]any{"logs": a.Logs} })
	record("/result", func(a *Activation) any { return a.Response })
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pong") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
	return mux
}

// refuse answers with an error as OpenWhisk does.
func refuse(w http.ResponseWriter, code int, text string) {
	reply(w, code, map[string]string{"error": text, "code": newID()})
}

// take takes an invocation.
func (c *controller) take(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("action")
	if _, ok := c.fleet.state(name); !ok {
		refuse(w, http.StatusNotFound, errUnknown.Error())
		return
	}
	params, code, err := parameters(w, r)
	if err != nil {
		refuse(w, code, err.Error())
		return
	}
	select {
	case c.room <- struct{}{}:
	default:
		c.m.throttled.WithLabelValues(name).Inc()
		refuse(w, http.StatusTooManyRequests, fmt.Sprintf("too many requests in flight (allowed: %d)", maxInFlight))
		return
	}
	act := begin(name, r.Header.Get(causeHeader), time.Now())
	done := make(chan error, 1)
	blocking := r.URL.Query().Get("blocking") == "true"
	ctx := r.Context()
	if !blocking {
		ctx = context.WithoutCancel(ctx)
	}
	c.invoking.Go(func() {
		defer func() { <-c.room }()
		done <- c.invoke(ctx, act, params)
	})
	if !blocking {
		reply(w, http.StatusAccepted, map[string]string{"activationId": act.ID})
		return
	}
	late := time.NewTimer(blockingWait)
	defer late.Stop()
	select {
	case err := <-done:
		c.answer(w, r, act, err)
	case <-late.C:
		reply(w, http.StatusAccepted, map[string]string{"activationId": act.ID})
	case <-r.Context().Done():
	}
}

// answer answers a blocking invocation that has ended.
func (c *controller) answer(w http.ResponseWriter, r *http.Request, act *Activation, err error) {
	var busy busyError
	switch {
	case errors.As(err, &busy):
		c.m.throttled.WithLabelValues(act.Name).Inc()
		refuse(w, http.StatusTooManyRequests, err.Error())
		return
	case err != nil:
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	code := http.StatusOK
	if !act.Response.Success {
		code = http.StatusBadGateway
	}
	w.Header().Set("X-Openwhisk-Activation-Id", act.ID)
	if r.URL.Query().Get("result") == "true" {
		reply(w, code, act.Response.Result)
		return
	}
	reply(w, code, act)
}

// parameters reads what an action is invoked with: an object, or nothing.
func parameters(w http.ResponseWriter, r *http.Request) (json.RawMessage, int, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request is longer than %d bytes", maxBody)
	case err != nil:
		return nil, http.StatusBadRequest, err
	case len(body) == 0:
		return json.RawMessage("{}"), 0, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil || object == nil {
		return nil, http.StatusBadRequest, errors.New("the request content was malformed: want a JSON object")
	}
	return body, 0, nil
}

// description is an action as the API tells of it.
type description struct {
	Namespace   string         `json:"namespace"`
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	Limits      map[string]any `json:"limits"`
	Annotations []Annotation   `json:"annotations"`
}

func describe(s state) description {
	return description{
		Namespace: guest, Name: s.name, Version: "0.0.1",
		Limits: map[string]any{
			"timeout": runWait.Milliseconds(), "concurrency": s.concurrency, "instances": s.instances,
		},
		Annotations: []Annotation{
			{"deployment", s.deployment}, {"replicas", s.replicas}, {"ready", len(s.pods)},
		},
	}
}

func (c *controller) listActions(w http.ResponseWriter, _ *http.Request) {
	list := []description{}
	for _, name := range c.fleet.names() {
		if s, ok := c.fleet.state(name); ok {
			list = append(list, describe(s))
		}
	}
	reply(w, http.StatusOK, list)
}

func (c *controller) getAction(w http.ResponseWriter, r *http.Request) {
	s, ok := c.fleet.state(r.PathValue("action"))
	if !ok {
		refuse(w, http.StatusNotFound, errUnknown.Error())
		return
	}
	reply(w, http.StatusOK, describe(s))
}

func (c *controller) listActivations(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number := func(key string, otherwise int) (int, error) {
		text := q.Get(key)
		if text == "" {
			return otherwise, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%s must be a number", key)
		}
		return n, nil
	}
	limit, err := number("limit", defaultList)
	skip, err2 := number("skip", 0)
	if err = errors.Join(err, err2); err != nil || limit > maxList {
		c.s.Log.WarnContext(r.Context(), "Activations cannot be listed so", "limit", clip(q.Get("limit")),
			"skip", clip(q.Get("skip")))
		refuse(w, http.StatusBadRequest, fmt.Sprintf("limit must be a number up to %d, and skip a number", maxList))
		return
	}
	list := []Activation{}
	docs := q.Get("docs") == "true"
	for _, a := range c.store.list(q.Get("name"), skip, limit) {
		short := *a
		if !docs { // As OpenWhisk: without what is long.
			short.Response.Result, short.Logs = json.RawMessage("null"), []string{}
		}
		list = append(list, short)
	}
	reply(w, http.StatusOK, list)
}

// clip shortens what somebody else has written.
func clip(text string) string { return text[:min(len(text), maxLine)] }
