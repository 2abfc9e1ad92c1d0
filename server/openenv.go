package server

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"time"
)

// OpenEnv's protocol, beside ours. Over HTTP it reaches an environment that was made by POST /envs; over a WebSocket
// such a one, or one that is made for the connection and ends with it.

// maxEpisodeID is how long the name may be that a trainer gives an episode.
const maxEpisodeID = 255

// OpenReset begins an episode, as OpenEnv says it.
type OpenReset struct {
	Seed      *uint64 `json:"seed,omitempty" doc:"begins a new sequence of problems and loads"`
	EpisodeID string  `json:"episode_id,omitempty" doc:"what the state calls the episode; the id of its record by default"`
	Problem   string  `json:"problem,omitempty" doc:"id of the episode's problem"`
}

// OpenStep takes a step, as OpenEnv says it.
type OpenStep struct {
	Action    OpenAction `json:"action"`
	Timeout   *float64   `json:"timeout_s,omitempty" doc:"how many seconds to wait for the step, which is taken to its end all the same"`
	RequestID string     `json:"request_id,omitempty" doc:"not heeded"`
}

// OpenAction is an action: a text with one call in it, or the call itself.
type OpenAction struct {
	Text      string         `json:"text,omitempty" doc:"text with one call in it"`
	Name      string         `json:"name,omitempty" doc:"name of an action, instead of a text"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"its arguments by name"`
	Metadata  map[string]any `json:"metadata,omitempty" doc:"not heeded"`
}

// OpenResult is what a reset or a step came to, as OpenEnv says it.
type OpenResult struct {
	Observation OpenObservation `json:"observation"`
	Reward      *float64        `json:"reward" doc:"of a step; null after a reset"`
	Done        bool            `json:"done" doc:"the episode is over"`
	Metadata    map[string]any  `json:"metadata" doc:"the info of a reset or a step, and terminated and truncated"`
}

// OpenObservation is an observation, as OpenEnv says it.
type OpenObservation struct {
	Text string `json:"text"`
}

// OpenState is the state of an environment, as OpenEnv says it.
type OpenState struct {
	EpisodeID *string `json:"episode_id" doc:"null before the first reset"`
	StepCount int     `json:"step_count" doc:"how many steps the episode has had"`
	MaxSteps  int     `json:"max_steps"`
	Done      bool    `json:"done" doc:"no episode is under way"`
}

// OpenSchema has the JSON schemas of what OpenEnv's clients send and get.
type OpenSchema struct {
	Action      map[string]any `json:"action"`
	Observation map[string]any `json:"observation"`
	State       map[string]any `json:"state"`
}

// OpenMetadata tells OpenEnv's clients what this is.
type OpenMetadata struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// OpenHealth says that the server is there, as OpenEnv says it.
type OpenHealth struct {
	Status string `json:"status"`
}

// openRoutes are the paths of OpenEnv's protocol.
func (f *Front) openRoutes() []route {
	get, post, ok := http.MethodGet, http.MethodPost, http.StatusOK
	return []route{
		{
			get, "/openenv/health", "Say that the server is there, to OpenEnv's clients",
			nil,
			ok,
			OpenHealth{},
			"", f.openHealth,
		},
		{get, "/openenv/metadata", "Tell OpenEnv's clients what this is", nil, ok, OpenMetadata{}, "", f.openMetadata},
		{
			get, "/openenv/schema", "Describe what OpenEnv's clients send and get",
			nil,
			ok,
			OpenSchema{},
			"", f.openSchema,
		},
		{
			get, "/openenv/ws", "Speak OpenEnv's protocol over a WebSocket, with an environment for the connection",
			nil,
			http.StatusSwitchingProtocols,
			nil,
			"", limited(f.openOwn),
		},
		{
			post, "/openenv/{id}/reset", "Begin an episode, as OpenEnv says it",
			OpenReset{},
			ok,
			OpenResult{},
			"", f.openReset,
		},
		{post, "/openenv/{id}/step", "Take a step, as OpenEnv says it", OpenStep{}, ok, OpenResult{}, "", f.openStep},
		{
			get, "/openenv/{id}/state", "Say where an episode is, as OpenEnv says it",
			nil,
			ok,
			OpenState{},
			"", f.openState,
		},
		{
			get, "/openenv/{id}/ws", "Speak OpenEnv's protocol over a WebSocket, with an environment that there is",
			nil,
			http.StatusSwitchingProtocols,
			nil,
			"", f.openGiven,
		},
	}
}

func (f *Front) openHealth(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, OpenHealth{"healthy"})
}

func (f *Front) openMetadata(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, OpenMetadata{
		Name:        "aiopslab",
		Description: "A live cloud with something wrong in it, for an agent to find and to set right.",
	})
}

func (f *Front) openSchema(w http.ResponseWriter, _ *http.Request) error {
	types := schemas{}
	return writeJSON(w, http.StatusOK, OpenSchema{
		types.object(reflect.TypeFor[OpenAction]()), types.object(reflect.TypeFor[OpenObservation]()),
		types.object(reflect.TypeFor[OpenState]()),
	})
}

// openReset answers POST /openenv/{id}/reset.
func (f *Front) openReset(w http.ResponseWriter, r *http.Request) error {
	var reset OpenReset
	if err := decode(w, r, &reset); err != nil {
		return err
	}
	answer, err := f.beginOpen(r.Context(), callerOf(r), r.PathValue("id"), reset)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

// openStep answers POST /openenv/{id}/step.
func (f *Front) openStep(w http.ResponseWriter, r *http.Request) error {
	var s OpenStep
	if err := decode(w, r, &s); err != nil {
		return err
	}
	ctx := r.Context()
	if s.Timeout != nil {
		if !(*s.Timeout > 0 && *s.Timeout <= maxSeconds) {
			return fail(http.StatusUnprocessableEntity, "timeout_s is %v; it is above 0, and a week at most",
				*s.Timeout)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*s.Timeout*float64(time.Second)))
		defer cancel()
	}
	answer, err := f.stepOpen(ctx, callerOf(r), r.PathValue("id"), s.Action)
	if errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil {
		return fail(http.StatusGatewayTimeout,
			"the step is not done within timeout_s; it is taken to its end, and the next one waits for that")
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

// openState answers GET /openenv/{id}/state.
func (f *Front) openState(w http.ResponseWriter, r *http.Request) error {
	s, err := f.stateOpen(r.Context(), callerOf(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s)
}

// beginOpen begins an episode.
func (f *Front) beginOpen(ctx context.Context, c *caller, id string, r OpenReset) (*OpenResult, error) {
	if len(r.EpisodeID) > maxEpisodeID {
		return nil, fail(http.StatusUnprocessableEntity, "episode_id is longer than %d bytes", maxEpisodeID)
	}
	first, err := f.beginEpisode(ctx, c, id, Reset{Seed: r.Seed, Options: ResetOptions{r.Problem}, name: r.EpisodeID})
	if err != nil {
		return nil, err
	}
	return &OpenResult{Observation: OpenObservation{first.Observation}, Metadata: first.Info}, nil
}

// stepOpen takes a step.
func (f *Front) stepOpen(ctx context.Context, c *caller, id string, a OpenAction) (*OpenResult, error) {
	if a.Text == "" && a.Name == "" {
		return nil, fail(http.StatusUnprocessableEntity, "an action has a text, or a name and arguments")
	}
	response, err := Act{a.Text, a.Name, a.Arguments}.response()
	if err != nil {
		return nil, err
	}
	res, err := f.takeStep(ctx, c, id, Move{response})
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"terminated": res.Terminated, "truncated": res.Truncated}
	maps.Copy(metadata, res.Info)
	return &OpenResult{OpenObservation{res.Observation}, &res.Reward, res.Terminated || res.Truncated, metadata}, nil
}

// stateOpen is where an episode is. It waits for a step that is being taken.
func (f *Front) stateOpen(ctx context.Context, c *caller, id string) (*OpenState, error) {
	e, err := f.enter(ctx, c, id)
	if err != nil {
		return nil, err
	}
	defer f.leave(e)
	s := &OpenState{StepCount: e.steps, MaxSteps: e.limit, Done: !e.playing}
	if e.episode != "" {
		s.EpisodeID = &e.episode
	}
	return s, nil
}

// begins notes that an episode has begun, and what it is called.
func (e *env) begins(first First, n NewSession, name string) {
	id, _ := first.Info["episode"].(string)
	e.episode, e.steps, e.limit, e.playing = cmp.Or(name, id), 0, n.MaxSteps, true
	e.drawn, e.drawnID, e.repeated = beginning{n.Problem, n.Seed}, id, ""
	e.begun.Add(1)
}

// goesOn notes what came of a step.
func (e *env) goesOn(r Result) {
	if n, ok := r.Info["step"].(float64); ok {
		e.steps = int(n)
	}
	e.playing = !r.Terminated && !r.Truncated
}
