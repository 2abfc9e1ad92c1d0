package redis

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/cell"
)

// Scripts run at the far end of a line, in a cell where there is need: the engine counts no memory and
// cannot always be interrupted. What a script calls comes back over the line.

const (
	luaCell = "redis-lua"
	// luaIdle is how long an engine is kept for the next script.
	luaIdle = 10 * time.Second
)

func init() { cell.RegisterFunc(luaCell, serveLua) }

// luaMessage is what the server and the engine say to each other: a command that is to run, a command
// that a script calls, the reply to one.
type luaMessage struct {
	DB    int
	Resp3 bool     // the client wants it
	Args  []string // nil in a reply
	Reply []byte
}

// serveLua is the engine: miniredis whose scripts call somebody else.
func serveLua(line net.Conn) {
	defer line.Close()
	m := miniredis.NewMiniRedis()
	c, err := m.Dial() // It starts without a listener.
	if err != nil {
		return
	}
	defer m.Close()
	defer c.Close()
	in, out := gob.NewDecoder(line), gob.NewEncoder(line)
	own := false // The next command is to be executed here.
	m.Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
		if own {
			own = false
			return false
		}
		a := luaMessage{}
		if out.Encode(luaMessage{Args: append([]string{command}, args...)}) != nil || in.Decode(&a) != nil {
			a.Reply = fail("ERR the server has gone")
		}
		p.WriteRaw(string(a.Reply))
		return true
	})
	for {
		var q luaMessage
		if in.Decode(&q) != nil {
			return
		}
		var reply bytes.Buffer
		p := server.NewPeer(bufio.NewWriter(&reply))
		p.Resp3 = q.Resp3
		for _, args := range [][]string{{"SELECT", strconv.Itoa(q.DB)}, q.Args} {
			p.Flush()
			reply.Reset()
			own = true
			m.Server().Dispatch(p, args)
		}
		p.Flush()
		if out.Encode(luaMessage{Reply: reply.Bytes()}) != nil {
			return
		}
	}
}

// lua is the server's end of a line to an engine.
type lua struct {
	line net.Conn
	in   *gob.Decoder
	out  *gob.Encoder
	cell *cell.Cell // nil if the engine runs at home
	idle *time.Timer
	end  func()
}

// startLua starts an engine, which ends with ctx.
func startLua(ctx context.Context, env *kit.Env) (*lua, error) {
	l := &lua{}
	if cell.Needed(env) {
		c, err := cell.Start(ctx, env, luaCell)
		if err != nil {
			return nil, err
		}
		l.cell, l.line, l.end = c, c.Line, c.Close
	} else {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			serveLua(there)
		}()
		stop := context.AfterFunc(ctx, func() { here.Close() })
		l.line, l.end = here, func() {
			stop()
			here.Close()
			<-done
		}
	}
	l.end = sync.OnceFunc(l.end)
	l.in, l.out = gob.NewDecoder(l.line), gob.NewEncoder(l.line)
	return l, nil
}

// run has the engine execute a command. called executes what a script calls.
func (l *lua) run(q luaMessage, called func(args []string) []byte) ([]byte, error) {
	if err := l.out.Encode(q); err != nil {
		return nil, err
	}
	for {
		var m luaMessage
		if err := l.in.Decode(&m); err != nil {
			return nil, err
		}
		if m.Args == nil {
			return m.Reply, nil
		}
		m.Args[0] = strings.ToUpper(m.Args[0])
		if err := l.out.Encode(luaMessage{Reply: called(m.Args)}); err != nil {
			return nil, err
		}
	}
}
