package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

// noScript are commands that a script must not call.
var noScript = map[string]bool{}

func init() {
	for n := range strings.FieldsSeq(
		`EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT MULTI EXEC DISCARD WATCH UNWATCH SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE
		PUNSUBSCRIBE AUTH HELLO QUIT RESET CLIENT CONFIG MONITOR SAVE BGSAVE BGREWRITEAOF SHUTDOWN DEBUG WAIT ACL MODULE`) {
		noScript[n] = true
	}
}

// scriptRun is a script that runs.
type scriptRun struct {
	slow   chan struct{} // closed when it has taken long enough for others to complain
	kill   func()
	wrote  atomic.Bool
	killed atomic.Bool
}

const (
	errBusy       = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errUnkillable = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either " +
		"wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	errNotBusy = "NOTBUSY No scripts in execution right now."
	// busyPoll is how often who waits for a command of somebody else looks whether it is a script.
	busyPoll = 100 * time.Millisecond
)

// isScripting reports whether a command is for the engine.
func isScripting(command string) bool {
	switch command {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "SCRIPT":
		return true
	}
	return false
}

// takeTurn waits until no other command runs. If a script does that takes too long, the turn is not taken,
// and there is a reply.
func (c *client) takeTurn(args []string) (reply []byte, taken bool) {
	for {
		var slow chan struct{}
		if s := c.script.Load(); s != nil {
			slow = s.slow
		}
		select {
		case c.turn <- struct{}{}:
			return nil, true
		default:
		}
		t := time.NewTimer(busyPoll)
		select {
		case c.turn <- struct{}{}:
			t.Stop()
			return nil, true
		case <-t.C:
		case <-slow:
			t.Stop()
			return c.whileBusy(args), false
		}
	}
}

// whileBusy answers a command while a script runs.
func (c *client) whileBusy(args []string) []byte {
	switch {
	case args[0] == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[1], "KILL"):
		return c.scriptKill()
	case args[0] == "SHUTDOWN" && len(args) == 2 && strings.EqualFold(args[1], "NOSAVE"):
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.shutdownCommand(args)
	}
	return fail(errBusy)
}

func (c *client) scriptKill() []byte {
	s := c.script.Load()
	switch {
	case s == nil:
		return fail(errNotBusy)
	case s.wrote.Load():
		return fail(errUnkillable)
	}
	s.killed.Store(true)
	s.kill()
	return ok
}

// scripting executes a command for the engine.
func (c *client) scripting(ctx context.Context, args []string) []byte {
	if c.inTx {
		c.aborted = true
		return fail("ERR %s inside a transaction is not supported", args[0])
	}
	if args[0] == "SCRIPT" {
		return c.scriptCommand(ctx, args)
	}
	if len(args) < 3 {
		return wrongArity(args[0])
	}
	code, known := args[1], true
	command, isSHA := strings.CutPrefix(args[0], "EVALSHA")
	command = "EVAL" + command
	if !isSHA {
		command = args[0]
	} else if code, known = c.scripts[strings.ToLower(args[1])]; !known {
		return fail("NOSCRIPT No matching script. Please use EVAL.")
	}
	result := c.runScript(ctx, append([]string{command, code}, args[2:]...))
	if len(result) > 0 && result[0] != failure {
		c.keepScript(code)
	}
	return result
}

// scriptCommand is SCRIPT.
func (c *client) scriptCommand(ctx context.Context, args []string) []byte {
	switch sub := strings.ToUpper(args[min(1, len(args)-1)]); {
	case sub == "LOAD" && len(args) == 3:
		result := c.runScript(ctx, args)
		if len(result) > 0 && result[0] != failure {
			c.keepScript(args[2])
		}
		return result
	case sub == "EXISTS" && len(args) > 2:
		b := []byte("*" + strconv.Itoa(len(args)-2) + "\r\n")
		for _, sha := range args[2:] {
			n := int64(0)
			if _, found := c.scripts[strings.ToLower(sha)]; found {
				n = 1
			}
			b = append(b, number(n)...)
		}
		return b
	case sub == "FLUSH" && len(args) <= 3:
		c.scripts, c.scriptBytes = map[string]string{}, 0
		c.charge()
		return ok
	case sub == "KILL" && len(args) == 2:
		return c.scriptKill()
	}
	return unknownSubcommand(append(args, ""))
}

// keepScript puts a script where EVALSHA finds it. It counts as data does.
func (c *client) keepScript(code string) {
	sum := sha1.Sum([]byte(code))
	sha := hex.EncodeToString(sum[:])
	if _, found := c.scripts[sha]; !found {
		c.scripts[sha] = code
		c.scriptBytes += int64(len(code))
		c.charge()
	}
}

// runScript has the engine execute a command. The server's state is free meanwhile, but whoever wants
// to execute a command has to wait.
func (c *client) runScript(ctx context.Context, args []string) []byte {
	engine, err := c.engine(ctx)
	if err != nil {
		return fail("ERR Error running script: %v", err)
	}
	s := &scriptRun{slow: make(chan struct{}), kill: engine.end}
	limit := time.AfterFunc(time.Duration(c.config.int("lua-time-limit"))*time.Millisecond, func() {
		c.log(warning, "Lua slow script detected: still in execution after %s milliseconds. You can try killing the "+
			"script using the SCRIPT KILL command. Script SHA1 is: %x",
			c.config.values["lua-time-limit"], sha1.Sum([]byte(args[1])))
		close(s.slow)
	})
	c.script.Store(s)
	db := c.db
	c.mu.Unlock()
	result, err := engine.run(luaMessage{DB: db, Resp3: c.peer.Resp3, Args: args}, func(call []string) []byte {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.called(s, &db, call)
	})
	c.mu.Lock()
	c.script.Store(nil)
	limit.Stop()
	if err == nil {
		engine.idle.Reset(luaIdle)
		return result
	}
	engine.end()
	c.lua = nil
	if s.killed.Load() {
		return fail(
			"ERR Error running script (call to f_%x): @user_script:1: Script killed by user with SCRIPT KILL...",
			sha1.Sum([]byte(args[1])))
	}
	if engine.cell != nil {
		err = engine.cell.Cause()
	}
	return fail("ERR Error running script: %v", err)
}

// engine returns the server's engine, and starts it if there is none.
func (c *client) engine(ctx context.Context) (*lua, error) {
	if c.lua != nil && c.lua.idle.Stop() {
		return c.lua, nil
	}
	l, err := startLua(ctx, c.env)
	if err != nil {
		return nil, err
	}
	l.idle = time.AfterFunc(luaIdle, l.end)
	l.idle.Stop()
	c.lua = l
	return l, nil
}

// called executes what a script calls, in the script's database.
func (c *client) called(s *scriptRun, db *int, args []string) []byte {
	k, writing := writes[args[0]]
	switch {
	case noScript[args[0]] || blocking(args):
		return fail("ERR This Redis command is not allowed from scripts")
	case !c.data.srv.IsRegisteredCommand(args[0]) || hidden[args[0]]:
		return unknownCommand(args[0], args[1:])
	case args[0] == "SELECT":
		n, err := strconv.Atoi(args[len(args)-1])
		if err != nil || n < 0 || int64(n) >= c.config.int("databases") {
			return fail("ERR DB index is out of range")
		}
		*db = n
		return ok
	case writing:
		if why := c.misconf(); why != "" {
			return fail("%s", why)
		}
		if !c.evict() && k.grows {
			return fail(errOOM)
		}
	}
	result := reword(args, c.data.do(*db, args...))
	if writing && len(result) > 0 && result[0] != failure {
		s.wrote.Store(true)
		c.account(*db, args, time.Now())
		c.propagate(*db, c.repeatable(args, parseReply(result))...)
	}
	return result
}

// forbidden are the names by which a script could reach files of the machine, of which the engine has
// more than the original's, or get at those names without writing them.
var forbidden = regexp.MustCompile(
	`\b(dofile|loadfile|load|loadstring|require|module|package|debug|_G|getfenv|setfenv)\b`)

// refuse returns the reply to a command with a script that must not run; nil for all others.
func refuse(args []string) []byte {
	script := ""
	switch {
	case (args[0] == "EVAL" || args[0] == "EVAL_RO") && len(args) > 1:
		script = args[1]
	case args[0] == "SCRIPT" && len(args) > 2 && strings.EqualFold(args[1], "LOAD"):
		script = args[2]
	}
	if err := nesting.Check(script, nesting.Query); err != nil {
		return fail("ERR Error compiling script (new function): user_script:1: chunk is %v", err)
	}
	if name := forbidden.FindString(script); name != "" {
		return fail("ERR user_script:1: Script attempted to access nonexistent global variable '%s'", name)
	}
	return nil
}
