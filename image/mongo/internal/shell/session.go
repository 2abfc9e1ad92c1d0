package shell

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
)

var (
	//go:embed guard.js
	guardJS string
	//go:embed types.js
	typesJS string
	//go:embed format.js
	formatJS string
	//go:embed api.js
	apiJS string
)

// prelude is what scripts see, compiled once.
var prelude = sync.OnceValue(func() *goja.Program {
	return goja.MustCompile("prelude", "(function () {\n"+guardJS+typesJS+formatJS+apiJS+"\n})();", false)
})

// errQuit ends the shell.
type errQuit struct{ code int }

func (e errQuit) Error() string { return fmt.Sprintf("quit %d", e.code) }

// session is a JavaScript world with connections. It is used by one goroutine.
type session struct {
	ctx     context.Context
	env     *kit.Env
	options *options
	vm      *goja.Runtime
	clients []*client
	shown   goja.Callable
}

// newSession makes the world of scripts. The first connection may be nil.
func newSession(ctx context.Context, env *kit.Env, o *options, c *client) (*session, error) {
	s := &session{ctx: ctx, env: env, options: o, vm: goja.New()}
	if c != nil {
		s.clients = append(s.clients, c)
	}
	s.vm.SetMaxCallStackSize(2048)
	if err := s.vm.Set("_host", s.host()); err != nil {
		return nil, err
	}
	if _, err := s.vm.RunProgram(prelude()); err != nil {
		return nil, err
	}
	s.shown, _ = goja.AssertFunction(s.vm.Get("_shown"))
	if c != nil {
		start, _ := goja.AssertFunction(s.vm.Get("_start"))
		if _, err := start(goja.Undefined(), s.vm.ToValue(o.target.db)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *session) close() {
	for _, c := range s.clients {
		c.close()
	}
}

// host returns the functions the prelude is built on.
func (s *session) host() *goja.Object {
	h := s.vm.NewObject()
	fields := map[string]any{
		"legacy": s.options.legacy, "version": version, "hostname": s.env.Hostname, "dir": s.env.Dir,
		"vars": s.env.Vars, "run": s.run, "auth": s.auth, "connect": s.connect, "load": s.load,
		"address":  func(id int) string { return s.clients[id].address },
		"database": func(uri string) string { t, _, _ := parseTarget(uri); t.complete(); return t.db },
		"print":    func(text string) { fmt.Fprintln(s.env.Stdout, text) },
		"quit":     func(code int) { s.vm.Interrupt(errQuit{code}) },
		"sleep":    s.sleep,
		"shallow":  bearable,
		"read":     func(file string) string { data, err := s.env.ReadFile(file); s.check(err); return string(data) },
		"oid":      func() string { return bson.NewObjectID().Hex() },
		"uuid":     func() string { return base64.StdEncoding.EncodeToString(value.NewUUID().Data) },
		"base64": func(digits string) string {
			data, err := hex.DecodeString(digits)
			s.check(err)
			return base64.StdEncoding.EncodeToString(data)
		},
		"hex": func(text string) string {
			data, err := base64.StdEncoding.DecodeString(text)
			s.check(err)
			return hex.EncodeToString(data)
		},
	}
	for name, f := range fields {
		h.Set(name, f)
	}
	return h
}

// check throws an error into the script.
func (s *session) check(err error) {
	if err != nil {
		panic(s.vm.NewGoError(err))
	}
}

// throw throws an error with a name, as the shell's own are.
func (s *session) throw(name, message string) {
	o, err := s.vm.New(s.vm.Get("Error"), s.vm.ToValue(message))
	if err != nil {
		panic(err)
	}
	o.Set("name", name)
	panic(s.vm.ToValue(o))
}

// run runs a command and returns the reply, ok or not.
func (s *session) run(id int, db string, cmd goja.Value) goja.Value {
	if id >= len(s.clients) {
		s.throw("MongoshInvalidInputError", "No connected database")
	}
	d, err := s.toDoc(cmd)
	s.check(err)
	reply, err := s.clients[id].run(s.ctx, db, d)
	var failed *serverError
	if err != nil && !errors.As(err, &failed) {
		if s.ctx.Err() != nil {
			s.vm.Interrupt(s.ctx.Err())
			return goja.Undefined()
		}
		s.throw("MongoNetworkError", fmt.Sprintf("connection 1 to %s closed", s.clients[id].address))
	}
	return s.toJS(reply)
}

// auth authenticates a connection.
func (s *session) auth(id int, db, user, password, mechanism string) {
	if id >= len(s.clients) {
		s.throw("MongoshInvalidInputError", "No connected database")
	}
	err := s.clients[id].auth(s.ctx, db, user, password, mechanism)
	var failed *serverError
	switch {
	case errors.As(err, &failed):
		reply := s.toJS(failed.reply)
		e, nerr := s.vm.New(s.vm.Get("MongoServerError"), reply)
		s.check(nerr)
		panic(s.vm.ToValue(e))
	case err != nil:
		s.throw("MongoNetworkError", err.Error())
	}
}

// connect opens another connection.
func (s *session) connect(uri string) int {
	t, secure, err := parseTarget(uri)
	s.check(err)
	t.complete()
	t.tls, err = secure.config(s.env, t.address)
	s.check(err)
	c, err := dial(s.ctx, s.env, t, s.options.appName())
	var failed *connectError
	if errors.As(err, &failed) {
		s.throw(failed.name, failed.message)
	}
	s.check(err)
	s.clients = append(s.clients, c)
	id := len(s.clients) - 1
	if t.user != "" {
		s.auth(id, t.source, t.user, t.password, t.mechanism)
	}
	return id
}

func (s *session) sleep(ms int64) {
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
		s.vm.Interrupt(s.ctx.Err())
	}
}

// load runs a script file.
func (s *session) load(file string) {
	data, err := s.env.ReadFile(file)
	if err != nil {
		s.throw("Error", fmt.Sprintf("ENOENT: no such file or directory, open '%s'", file))
	}
	if _, err := s.runScript(file, string(data)); err != nil {
		var thrown *goja.Exception
		if errors.As(err, &thrown) {
			panic(thrown.Value())
		}
		panic(s.vm.NewGoError(err))
	}
}

// errStack is what JavaScript has for code that nests too deep.
var errStack = errors.New("RangeError: Maximum call stack size exceeded")

// What bounds the work of the compiler, which grows with the square of it.
const (
	maxArrows    = 2000   // functions in a script
	maxOperators = 10_000 // of one expression
)

// bearable reports whether a text is one that the engine can read.
func bearable(code string) bool {
	if nesting.Check(code, nesting.Script) != nil || strings.Count(code, "=>") > maxArrows {
		return false
	}
	operators := 0
	for i := range len(code) {
		switch code[i] {
		case ';', ',', '\n', '{', '}':
			operators = 0
		case '+', '-', '*', '/', '%', '<', '>', '=', '&', '|', '^', '?', '.':
			if operators++; operators > maxOperators {
				return false
			}
		}
	}
	return true
}

// runScript runs code that does not nest too deep for the engine.
func (s *session) runScript(name, code string) (goja.Value, error) {
	if !bearable(code) {
		return nil, errStack
	}
	return s.vm.RunScript(name, rewrite(code))
}

// eval runs JavaScript. It interrupts it when the shell's context ends.
func (s *session) eval(name, code string) (goja.Value, error) {
	stop := context.AfterFunc(s.ctx, func() { s.vm.Interrupt(s.ctx.Err()) })
	defer stop()
	v, err := s.runScript(name, code)
	var interrupted *goja.InterruptedError
	if errors.As(err, &interrupted) {
		s.vm.ClearInterrupt()
		if cause, ok := interrupted.Value().(error); ok {
			return nil, cause
		}
	}
	return v, err
}

// show prints a result the way the shell shows it.
func (s *session) show(v goja.Value) error {
	if v == nil || goja.IsUndefined(v) {
		return nil
	}
	text, err := s.shown(goja.Undefined(), v)
	if err != nil {
		return err
	}
	if str := text.String(); str != "" {
		fmt.Fprintln(s.env.Stdout, str)
	}
	return nil
}

// message is the text of an error as the shell prints it.
func (s *session) message(err error) string {
	var thrown *goja.Exception
	if !errors.As(err, &thrown) {
		var syntax *goja.CompilerSyntaxError
		if errors.As(err, &syntax) {
			text := strings.TrimPrefix(syntax.Message, "SyntaxError: ")
			return "SyntaxError: " + text
		}
		return err.Error()
	}
	v := thrown.Value()
	if o, ok := v.(*goja.Object); ok {
		if m := o.Get("message"); m != nil && !goja.IsUndefined(m) {
			name := "Error"
			if n := o.Get("name"); n != nil && n.String() != "" {
				name = n.String()
			}
			if s.options.legacy && strings.HasPrefix(name, "Mongo") {
				name = "Error"
			}
			return strings.TrimSuffix(name+": "+m.String(), ": ")
		}
	}
	return v.String()
}
