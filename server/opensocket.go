package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// socketPatience is how long a client may not be heard of. It is asked for a sign of life at every heartbeat, and
	// clients' libraries give it while they wait for an answer.
	socketPatience = 4 * heartbeat
	// socketTimeout is how long a message may take to be sent.
	socketTimeout = 30 * time.Second
	// maxWaiting is how many messages of a client may wait for an answer. A client that waits for answers sends one.
	maxWaiting = 8
)

// openOwn answers GET /openenv/ws: the environment is made by the first reset, and ends with the connection.
func (f *Front) openOwn(w http.ResponseWriter, r *http.Request) error {
	d := &dialogue{front: f, who: callerOf(r), own: true}
	defer func() { f.remove(d.id) }()
	return f.converse(w, r, d)
}

// openGiven answers GET /openenv/{id}/ws.
func (f *Front) openGiven(w http.ResponseWriter, r *http.Request) error {
	d := &dialogue{front: f, who: callerOf(r), id: r.PathValue("id")}
	if !d.there() || !d.who.reaches(d.id) {
		return noEnv(d.id)
	}
	return f.converse(w, r, d)
}

// fromHere reports whether a WebSocket may be opened: by a program, or by a page of this server or, if only this
// machine reaches it, of this machine. A browser asks nobody before it opens one.
func (f *Front) fromHere(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Host == r.Host || f.Loopback && isLoopback(u.Host))
}

// converse answers the messages of a WebSocket, one after another, until either side has gone.
func (f *Front) converse(w http.ResponseWriter, r *http.Request, d *dialogue) error {
	upgrader := websocket.Upgrader{
		CheckOrigin: f.fromHere, HandshakeTimeout: socketTimeout,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, why error) {
			reply(w, fail(status, "this path is for WebSockets: %v", why))
		},
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil //nolint:nilerr // It is answered.
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer context.AfterFunc(f.ctx, cancel)()
	messages := make(chan []byte, maxWaiting)
	var helpers sync.WaitGroup
	helpers.Go(func() {
		defer cancel()
		listen(conn, messages)
	})
	helpers.Go(func() { keepAlive(ctx, conn) })
	defer helpers.Wait()
	defer conn.Close()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-messages:
			answer, last := d.answer(ctx, m)
			if last {
				bid(conn, websocket.CloseNormalClosure, "")
				return nil
			}
			b, err := json.Marshal(answer)
			if err != nil {
				return nil //nolint:nilerr // The answer has begun. Data are our own types, and out of JSON.
			}
			_ = conn.SetWriteDeadline(time.Now().Add(socketTimeout))
			if conn.WriteMessage(websocket.TextMessage, b) != nil { // In one frame, as the simplest clients expect it.
				return nil
			}
		}
	}
}

// listen reads messages until the other side is gone, or says too much.
func listen(conn *websocket.Conn, messages chan<- []byte) {
	conn.SetReadLimit(maxBody)
	alive := func() { _ = conn.SetReadDeadline(time.Now().Add(socketPatience)) }
	conn.SetPongHandler(func(string) error {
		alive()
		return nil
	})
	ping := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		alive()
		return ping(data)
	})
	for {
		alive()
		_, m, err := conn.ReadMessage()
		if err != nil {
			return
		}
		select {
		case messages <- m:
		default:
			bid(conn, websocket.ClosePolicyViolation, "wait for an answer before you send the next message")
			return
		}
	}
}

// keepAlive asks the other side for signs of life.
func keepAlive(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketTimeout)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// bid says why a connection ends.
func bid(conn *websocket.Conn, code int, why string) {
	m := websocket.FormatCloseMessage(code, why)
	_ = conn.WriteControl(websocket.CloseMessage, m, time.Now().Add(socketTimeout))
}

// openMessage is a message of either side.
type openMessage struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// openAnswer is an answer to one.
type openAnswer struct {
	Type string `json:"type"` // observation, state, or error
	Data any    `json:"data"`
}

// openError is the data of an error.
type openError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// openSettings are what the environment of a connection is made with, and an episode in it begun.
type openSettings struct {
	NewEnv
	Seed      *uint64 `json:"seed,omitempty"`
	EpisodeID string  `json:"episode_id,omitempty"`
}

// dialogue is what is said over a WebSocket.
type dialogue struct {
	front    *Front
	who      *caller
	id       string // of the environment
	own      bool   // it is made for the connection
	settings NewEnv // what it was made with
}

// answer answers a message. Last says that it was the last.
func (d *dialogue) answer(ctx context.Context, text []byte) (answer openAnswer, last bool) {
	var m openMessage
	if !json.Valid(text) {
		return openAnswer{"error", openError{"the message is no JSON", "INVALID_JSON"}}, false
	}
	if err := decodeText(text, &m); err != nil {
		return mistake(err), false
	}
	var data any
	var err error
	answer.Type = "observation"
	switch m.Type {
	case "reset":
		data, err = d.reset(ctx, m.Data)
	case "step":
		var a OpenAction
		if err = decodeText(m.Data, &a); err == nil {
			data, err = d.step(ctx, a)
		}
	case "state":
		answer.Type = "state"
		data, err = d.state(ctx)
	case "close":
		return answer, true
	default:
		return openAnswer{"error", openError{
			"there is no message of type " + quote(m.Type) + "; there are reset, step, state and close", "UNKNOWN_TYPE",
		}}, false
	}
	if err != nil {
		return mistake(err), false
	}
	answer.Data = data
	return answer, false
}

// quote is a short text of a client in quotes.
func quote(text string) string {
	b, _ := json.Marshal(text[:min(len(text), 40)]) // It is a string.
	return string(b)
}

// mistake tells of an error, with OpenEnv's code for it.
func mistake(err error) openAnswer {
	code := "EXECUTION_ERROR"
	if f, ok := errors.AsType[*failure](err); ok {
		switch f.status {
		case http.StatusUnprocessableEntity:
			code = "VALIDATION_ERROR"
		case http.StatusServiceUnavailable:
			code = "CAPACITY_REACHED"
		case http.StatusNotFound, http.StatusConflict:
			code = "SESSION_ERROR"
		}
	}
	return openAnswer{"error", openError{err.Error(), code}}
}

// there reports whether there still is the environment.
func (d *dialogue) there() bool {
	d.front.mu.Lock()
	defer d.front.mu.Unlock()
	return d.front.envs[d.id] != nil
}

func (d *dialogue) reset(ctx context.Context, data json.RawMessage) (*OpenResult, error) {
	if !d.own {
		var r OpenReset
		if err := decodeText(data, &r); err != nil {
			return nil, err
		}
		return d.front.beginOpen(ctx, d.who, d.id, r)
	}
	s := openSettings{NewEnv: NewEnv{Reward: DefaultReward}}
	if err := decodeText(data, &s); err != nil {
		return nil, err
	}
	r := OpenReset{EpisodeID: s.EpisodeID, Seed: s.Seed}
	if !d.there() || !s.fits(d.settings) {
		return d.remake(ctx, s)
	}
	if problem := s.NewEnv.Problem; problem != d.settings.Problem {
		r.Problem = problem
	}
	return d.front.beginOpen(ctx, d.who, d.id, r)
}

// fits reports whether an environment that was made with other settings is good for these: they are the same, or say
// nothing, or name a problem at most.
func (s openSettings) fits(made NewEnv) bool {
	if reflect.DeepEqual(s.NewEnv, made) {
		return true
	}
	n := s.NewEnv
	n.Problem = ""
	return reflect.DeepEqual(n, NewEnv{Reward: DefaultReward})
}

// remake makes the environment of the connection, and begins its first episode. One that there was ends.
func (d *dialogue) remake(ctx context.Context, s openSettings) (*OpenResult, error) {
	if s.N != 0 {
		return nil, fail(http.StatusUnprocessableEntity, "a connection has one environment; open another for another")
	}
	if err := d.end(ctx); err != nil {
		return nil, err
	}
	d.settings = s.NewEnv
	n := s.NewEnv
	if s.Seed != nil {
		n.Seed = *s.Seed
	}
	list, err := d.front.makeEnvs(ctx, &n)
	if err != nil {
		return nil, err
	}
	d.id = list[0].id
	return d.front.beginOpen(ctx, d.who, d.id, OpenReset{EpisodeID: s.EpisodeID, Seed: s.Seed})
}

func (d *dialogue) step(ctx context.Context, a OpenAction) (*OpenResult, error) {
	if d.id == "" {
		return nil, errNoEpisode
	}
	return d.front.stepOpen(ctx, d.who, d.id, a)
}

func (d *dialogue) state(ctx context.Context) (*OpenState, error) {
	if d.id == "" {
		return &OpenState{Done: true}, nil
	}
	return d.front.stateOpen(ctx, d.who, d.id)
}

// end ends the environment of the connection, and waits until another has room.
func (d *dialogue) end(ctx context.Context) error {
	id := d.id
	d.id = ""
	ended := d.front.remove(id)
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
