package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/image/mongo/internal/wire"
)

// command is something a client can ask for.
type command struct {
	run func(*call) (bson.D, error)
	// need returns the privileges it takes; nil is none, beyond being somebody.
	need func(*call) ([]need, error)
	// open is set if it needs no authentication.
	open  bool
	admin bool // may only be run against the database admin
	hello bool
}

// need is a privilege a command takes.
type need struct {
	on     auth.Resource
	action string
}

// call is a command being run.
type call struct {
	ctx  context.Context
	conn *conn
	srv  *Server
	name string
	db   string
	body value.Doc

	start time.Time
	cost  time.Duration // CPU time it states beyond the usual
	stats engine.Stats
	hits  int // documents returned
}

// The CPU time of commands: what mongod takes on a current core.
const (
	costCommand = 40 * time.Microsecond
	costKey     = 300 * time.Nanosecond
	costDoc     = time.Microsecond
	costWrite   = 25 * time.Microsecond
)

// slowQuery is what takes long enough to be logged.
const slowQuery = 100 * time.Millisecond

// run runs one command. The error is that of a connection that is closed meanwhile.
func (c *conn) run(ctx context.Context, req *wire.Request) (value.Doc, error) {
	name, _ := value.First(req.Body)
	db, _ := value.Str(value.Get(req.Body, "$db"))
	k := &call{ctx: ctx, conn: c, srv: c.srv, name: name, db: db, body: req.Body, start: time.Now()}
	if ms, ok := value.Int(value.Get(req.Body, "maxTimeMS")); ok && ms > 0 && name != "getMore" {
		var cancel context.CancelFunc
		k.ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	reply, err := k.do()
	spent := costCommand + k.cost + time.Duration(k.stats.Keys)*costKey + time.Duration(k.stats.Docs+k.hits)*costDoc
	if uerr := c.spend(k.ctx, spent); uerr != nil {
		if ctx.Err() != nil {
			return nil, uerr
		}
		err = code.Errorf(code.MaxTimeMSExpired, "operation exceeded time limit")
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if _, fatal := errors.AsType[*engine.WriteError](err); fatal {
		c.srv.fail(err)
		return nil, err
	}
	if err != nil {
		reply = errorReply(err)
	} else {
		reply = append(reply, bson.E{Key: "ok", Value: 1.0})
	}
	doc := value.Make(reply)
	k.logSlow(len(doc), err)
	return doc, nil
}

// do checks that a command may be run and runs it.
func (k *call) do() (bson.D, error) {
	cmd := commands[k.name]
	if cmd == nil {
		return nil, code.Errorf(code.CommandNotFound, "no such command: '%s'", k.name)
	}
	k.srv.counts.command(k.name, k.body)
	if k.db == "" {
		return nil, code.Errorf(40571, "OP_MSG requests require a $db argument")
	}
	if err := engine.CheckDatabase(k.db); err != nil && k.db != "$external" {
		return nil, err
	}
	if err := k.authorize(cmd); err != nil {
		if code.Of(err) == code.Unauthorized {
			k.srv.Log.Info(mlog.Access, 20436, k.conn.name(), "Checking authorization failed",
				bson.D{{Key: "error", Value: errorAttr(err)}})
		}
		return nil, err
	}
	if value.Exists(value.Get(k.body, "txnNumber")) || value.Truthy(value.Get(k.body, "startTransaction")) {
		return nil, code.Errorf(code.IllegalOperation,
			"Transaction numbers are only allowed on a replica set member or mongos")
	}
	if err := k.checkConcerns(); err != nil {
		return nil, err
	}
	return cmd.run(k)
}

// authorize checks that the client may run the command.
func (k *call) authorize(cmd *command) error {
	if cmd.admin && k.db != "admin" {
		return code.Errorf(code.Unauthorized, "%s may only be run against the admin database.", k.name)
	}
	if !k.srv.Auth || cmd.open {
		return nil
	}
	privileges := k.conn.privileges()
	if len(k.conn.users) == 0 && !k.conn.bypass {
		return code.Errorf(code.Unauthorized, "command %s requires authentication", k.name)
	}
	if cmd.need == nil {
		return nil
	}
	needs, err := cmd.need(k)
	if err != nil {
		return err
	}
	for _, n := range needs {
		if !auth.Allows(privileges, n.on, n.action) {
			return k.unauthorized()
		}
	}
	return nil
}

func (k *call) unauthorized() error {
	return code.Errorf(code.Unauthorized, "not authorized on %s to execute command %s", k.db,
		value.Text(redact(k.body)))
}

// redact hides passwords.
func redact(d value.Doc) value.Doc {
	if value.Missing(value.Get(d, "pwd")) {
		return d
	}
	var b value.Builder
	for name, v := range value.Fields(d) {
		if name == "pwd" {
			v = value.String("xxx")
		}
		b.Add(name, v)
	}
	return b.Doc()
}

// checkConcerns refuses what only a replica set can promise.
func (k *call) checkConcerns() error {
	if wc := value.Get(k.body, "writeConcern"); value.IsDoc(wc) {
		if n, ok := value.Int(value.Get(wc.Data, "w")); ok && n > 1 {
			return code.Errorf(code.BadValue, "cannot use 'w' > 1 when a host is not replicated")
		}
	}
	if rc := value.Get(k.body, "readConcern"); value.IsDoc(rc) {
		switch level, _ := value.Str(value.Get(rc.Data, "level")); level {
		case "linearizable":
			return code.Errorf(123, "node needs to be a replica set member to use read concern")
		case "snapshot":
			return code.Errorf(code.InvalidOptions,
				"readConcern level snapshot is only valid in a multi-statement transaction")
		}
	}
	return nil
}

// journaled makes writes durable if the client asks for it.
func (k *call) journaled() error {
	wc := value.Inner(value.Get(k.body, "writeConcern"))
	if value.Truthy(value.Get(wc, "j")) {
		return k.srv.Engine.Sync()
	}
	return nil
}

// errorReply is the answer to a command that failed.
func errorReply(err error) bson.D {
	c := code.Of(err)
	d := bson.D{
		{Key: "ok", Value: 0.0},
		{Key: "errmsg", Value: err.Error()},
		{Key: "code", Value: int32(c)},
		{Key: "codeName", Value: c.String()},
	}
	if dup, ok := errors.AsType[*engine.DuplicateKeyError](err); ok {
		d = append(d, bson.E{Key: "keyPattern", Value: dup.Index.Key()}, bson.E{Key: "keyValue", Value: dup.Value})
	}
	return d
}

// errorAttr is an error in the log.
func errorAttr(err error) bson.D {
	c := code.Of(err)
	return bson.D{
		{Key: "code", Value: int32(c)},
		{Key: "codeName", Value: c.String()},
		{Key: "errmsg", Value: err.Error()},
	}
}

// logSlow logs a command that took long.
func (k *call) logSlow(size int, err error) {
	took := time.Since(k.start)
	cmd := commands[k.name]
	if took < slowQuery || cmd == nil || cmd.hello {
		return
	}
	attr := bson.D{{Key: "type", Value: "command"}, {Key: "ns", Value: k.namespace()}}
	if app, ok := value.Str(value.At(k.conn.said(), "application.name")); ok {
		attr = append(attr, bson.E{Key: "appName", Value: app})
	}
	attr = append(attr, bson.E{Key: "command", Value: redact(k.body)})
	if k.stats.Plan != "" {
		attr = append(attr, bson.E{Key: "planSummary", Value: k.stats.Plan},
			bson.E{Key: "keysExamined", Value: k.stats.Keys}, bson.E{Key: "docsExamined", Value: k.stats.Docs},
			bson.E{Key: "nreturned", Value: k.hits})
	}
	if err != nil {
		c := code.Of(err)
		attr = append(attr, bson.E{Key: "ok", Value: 0}, bson.E{Key: "errMsg", Value: err.Error()},
			bson.E{Key: "errName", Value: c.String()}, bson.E{Key: "errCode", Value: int32(c)})
	}
	attr = append(attr, bson.E{Key: "numYields", Value: 0}, bson.E{Key: "reslen", Value: size},
		bson.E{Key: "protocol", Value: "op_msg"}, bson.E{Key: "durationMillis", Value: took.Milliseconds()})
	k.srv.Log.Info(mlog.Command, 51803, k.conn.name(), "Slow query", attr)
}

// namespace is what the command is about.
func (k *call) namespace() string {
	if coll, ok := value.Str(value.Get(k.body, k.name)); ok && !strings.HasPrefix(k.name, "sasl") {
		return k.db + "." + coll
	}
	return k.db + ".$cmd"
}
