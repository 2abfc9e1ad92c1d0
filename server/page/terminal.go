package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/human"
)

const (
	// maxTerminals is how many terminals a game may have at once.
	maxTerminals = 8
	// maxReplay is how much of earlier steps a new terminal shows.
	maxReplay = 64 << 10
	// socketTimeout is how long a message may take to be sent, and socketPatience how long nothing may be heard.
	socketTimeout  = 30 * time.Second
	socketPatience = 4 * heartbeat
)

// terminal is one of a game, in a browser. Lines are edited here, so that they can be brought back in another tab; a
// line is a step. What a command prints is text: nothing of it steers the terminal.
type terminal struct {
	game  *game
	conn  *websocket.Conn
	edit  *term.Terminal
	keys  *keys
	lines human.Lines
	doing atomic.Bool // a line of this terminal is a step that is under way

	sending sync.Mutex // of conn

	mu    sync.Mutex // of what follows, and of the order of what is shown
	shown int        // steps
	said  stand      // what the person has been told of where the game is
}

// stand is where a game is.
type stand string

const (
	standWaiting stand = "waiting"
	standTurn    stand = "turn"
	standGrading stand = "grading"
	standOver    stand = "over"
)

// openTerminal answers with a terminal over a WebSocket. A page of another origin gets none.
func (s *Site) openTerminal(w http.ResponseWriter, r *http.Request) error {
	g, err := s.game(r)
	if err != nil {
		return err
	}
	if !g.watch(1) {
		return fail(http.StatusTooManyRequests, "there are %d terminals of this incident already", maxTerminals)
	}
	defer g.watch(-1)
	upgrader := websocket.Upgrader{ // Without a function of ours, the origin must be this server.
		HandshakeTimeout: socketTimeout, ReadBufferSize: 4 << 10, WriteBufferSize: 16 << 10,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, why error) {
			http.Error(w, "this is for a terminal: "+why.Error(), status)
		},
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil //nolint:nilerr // It is answered.
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer context.AfterFunc(s.ctx, cancel)()
	t := &terminal{game: g, conn: conn, keys: newKeys()}
	t.edit = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, wire{t}}, "")
	t.edit.History = &g.past
	var helpers sync.WaitGroup
	helpers.Go(func() {
		defer cancel()
		t.listen(ctx)
	})
	helpers.Go(func() {
		defer cancel()
		t.follow(ctx)
	})
	defer helpers.Wait()
	defer context.AfterFunc(ctx, func() {
		t.keys.close()
		_ = conn.Close()
	})()
	defer conn.Close()
	defer cancel()
	t.work(ctx)
	return nil
}

// watch counts terminals, and reports whether there may be so many.
func (g *game) watch(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 && g.watchers >= maxTerminals {
		return false
	}
	g.watchers += n
	return true
}

// send sends a message, and waits until it is sent: who does not read holds up nobody but the own terminal.
func (t *terminal) send(kind int, b []byte) error {
	t.sending.Lock()
	defer t.sending.Unlock()
	_ = t.conn.SetWriteDeadline(time.Now().Add(socketTimeout))
	return t.conn.WriteMessage(kind, b)
}

// wire is where the line editor writes.
type wire struct{ t *terminal }

func (w wire) Write(b []byte) (int, error) {
	if err := w.t.send(websocket.BinaryMessage, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// screen is how large a terminal is.
type screen struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Ctrl-C and Ctrl-D, and what deletes a line.
const (
	ctrlC, ctrlD = 0x03, 0x04
	deleteLine   = "\x0b\x15"
	// clearScreen is what a terminal does for 'clear'.
	clearScreen = "\x1b[2J\x1b[H"
)

// listen takes what is typed, as bytes, and what size the terminal has, as a text.
func (t *terminal) listen(ctx context.Context) {
	t.conn.SetReadLimit(maxKeys)
	alive := func() { _ = t.conn.SetReadDeadline(time.Now().Add(socketPatience)) }
	t.conn.SetPongHandler(func(string) error {
		alive()
		return nil
	})
	for {
		alive()
		kind, m, err := t.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			var s screen
			if json.Unmarshal(m, &s) == nil {
				_ = t.edit.SetSize(min(max(s.Cols, 10), 500), min(max(s.Rows, 2), 300))
			}
			continue
		}
		t.typed(ctx, m)
	}
}

// typed takes keys. Ctrl-C ends the command that is under way, or deletes the line. Ctrl-D, which would end a shell,
// does nothing here.
func (t *terminal) typed(ctx context.Context, b []byte) {
	for len(b) > 0 {
		at := bytes.IndexAny(b, "\x03\x04")
		if at < 0 {
			t.keys.add(b)
			return
		}
		t.keys.add(b[:at])
		key := b[at]
		b = b[at+1:]
		if key == ctrlD {
			continue
		}
		if t.doing.Load() {
			t.keys.drop()
			_ = t.game.interrupt(ctx) // If it cannot be ended now, it ends by itself.
			continue
		}
		t.keys.add([]byte(deleteLine))
	}
}

// follow shows what happens in the game, and tells the page of it.
func (t *terminal) follow(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		t.game.mu.Lock()
		more := t.game.more
		t.game.mu.Unlock()
		state, err := json.Marshal(t.catchUp())
		if err != nil || t.send(websocket.TextMessage, state) != nil {
			return
		}
		for idle := true; idle; {
			select {
			case <-more:
				idle = false
			case <-beat.C:
				if t.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketTimeout)) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// news is what a page is told of a game: that there is more of it, and no more than that.
type news struct {
	Stand  stand `json:"stand"`
	Steps  int   `json:"steps"`
	Acting bool  `json:"acting"`
}

// catchUp shows all that this terminal does not have yet.
func (t *terminal) catchUp() news {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.game
	g.mu.Lock()
	steps := g.played
	n := news{g.stand(), len(g.played), g.acting != ""}
	told, verdict, wrong := g.told, g.ended, g.wrong
	g.mu.Unlock()
	if told != nil && t.lines == nil {
		t.lines = human.Lines(aci.Actions(told.Task))
		t.show(green("It is your turn.") + " Each line is a step: a command, or a call such as\n" +
			"get_alerts(\"" + told.Namespace + "\"). 'help' lists the calls, and Tab completes\n" +
			"their names. Ctrl-C ends a command.\n\n")
		t.skip(steps)
	}
	for ; t.shown < len(steps); t.shown++ {
		s := &steps[t.shown]
		text, came := "", strings.TrimRight(visible(s.Observation), "\n")
		if s.lens.by != t {
			text = green(t.game.app.Name) + " $ " + visible(strings.TrimPrefix(s.name(), "$ ")) + "\n"
		}
		if s.name() != s.Call && !s.Failed {
			came = "[It is drawn below.]"
		}
		t.show(text + came + "\n")
	}
	if n.Stand != t.said {
		t.said = n.Stand
		switch n.Stand {
		case standWaiting:
			t.show("The system is being set up. You can leave, and come back.\n")
		case standGrading:
			t.show("\n" + green("Your turn is over.") + " The verdict is being reached.\n")
		case standOver:
			t.edit.SetPrompt("")
			if verdict != nil {
				v := verdictOf(verdict.Class)
				t.show("\n" + green("The verdict is "+v.Word+":") + " " + clip(verdict.Why) + "\n")
			} else {
				t.show("\nThere is no verdict: " + clip(wrong) + "\n")
			}
		}
	}
	return n
}

// stand is where the game is. The caller holds g.mu.
func (g *game) stand() stand {
	switch {
	case g.ended != nil || g.wrong != "":
		return standOver
	case !g.over.IsZero():
		return standGrading
	case g.told == nil:
		return standWaiting
	}
	return standTurn
}

// skip leaves out the first of many steps.
func (t *terminal) skip(steps []played) {
	size, from := 0, len(steps)
	for from > 0 && size < maxReplay {
		from--
		size += len(steps[from].Observation)
	}
	if t.shown = from; from > 0 {
		t.show("[" + plural(from, "earlier step") + " left out; the list below has all]\n")
	}
}

// show writes a text above the line that is being typed.
func (t *terminal) show(text string) { _, _ = t.edit.Write([]byte(text)) } // If they are gone, reading says so.

func green(text string) string { return "\x1b[32m" + text + "\x1b[0m" }

// work reads lines, and does what they say.
func (t *terminal) work(ctx context.Context) {
	t.edit.SetBracketedPasteMode(true)
	t.edit.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' || pos != len(line) {
			return "", 0, false
		}
		line = t.actions().Complete(line)
		return line, len(line), true
	}
	for t.await(ctx); ctx.Err() == nil; {
		line, err := t.line()
		switch {
		case err != nil:
			return
		case line != "":
			t.do(ctx, line)
		}
	}
}

// await waits until there is somebody to talk to.
func (t *terminal) await(ctx context.Context) {
	g := t.game
	for {
		g.mu.Lock()
		more, there := g.more, g.stand() != standWaiting
		g.mu.Unlock()
		if there {
			t.catchUp()
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// prompt asks for a line, or for the rest of what is being pasted. When all is over, there is nothing to ask for.
func (t *terminal) prompt(pasting bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.said == standOver:
		t.edit.SetPrompt("")
	case pasting:
		t.edit.SetPrompt("> ")
	default:
		t.edit.SetPrompt(green(t.game.app.Name) + " $ ")
	}
}

// line reads one, or several that were pasted together.
func (t *terminal) line() (string, error) {
	var pasted []string
	size := 0
	for {
		t.prompt(len(pasted) > 0)
		line, err := t.edit.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			if size += len(line) + 1; size <= maxKeys {
				pasted = append(pasted, line)
			}
			continue
		}
		if err != nil {
			return "", err
		}
		if size > maxKeys {
			t.show("That is too much to paste.\n")
			return "", nil
		}
		return strings.TrimSpace(strings.Join(append(pasted, line), "\n")), nil
	}
}

func (t *terminal) actions() human.Lines {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines
}

// do takes the step that a line asks for, or answers it if it is a question.
func (t *terminal) do(ctx context.Context, line string) {
	if line == "clear" {
		t.show(clearScreen)
		return
	}
	lines := t.actions()
	if answer := lines.Explain(line); answer != "" && lines != nil {
		t.show(strings.TrimRight(answer, "\n") + "\n")
		return
	}
	t.doing.Store(true)
	defer t.doing.Store(false)
	_, err := t.game.act(ctx, lines.Response(line), lens{by: t})
	if err != nil {
		t.show(clip(err.Error()) + "\n")
		return
	}
	t.catchUp()
}
