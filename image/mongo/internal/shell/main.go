package shell

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/cell"
	unix "github.com/aiopslab/aiopslab/shell"
)

// version is the version of the older shell, and of the server it comes with.
const version = "4.4.6"

// mongoshVersion is the version of mongosh.
const mongoshVersion = "1.10.6"

// What a shell takes to start, and to be.
const (
	startCost   = 30 * time.Millisecond
	startMemory = 30 << 20
)

// The exit codes of the older shell, beyond 1.
const (
	exitEval   = 252
	exitScript = 253
)

// Mongosh is the shell.
func Mongosh(ctx context.Context, env *kit.Env) error { return start(ctx, env, false) }

// Mongo is the older shell, mongo.
func Mongo(ctx context.Context, env *kit.Env) error { return start(ctx, env, true) }

func start(ctx context.Context, env *kit.Env, legacy bool) error {
	ctx, env, detach := unix.AttachTerminal(ctx, env)
	defer detach()
	o, err := parseOptions(env, legacy)
	if err != nil {
		fmt.Fprintf(env.Stderr, "Error parsing command line: %v\ntry '%s --help' for more information\n", err,
			path.Base(env.Args[0]))
		return kit.Exit(1)
	}
	switch {
	case o.version && legacy:
		fmt.Fprintf(env.Stdout, "MongoDB shell version v%s\n", version)
		return nil
	case o.version:
		fmt.Fprintln(env.Stdout, mongoshVersion)
		return nil
	case o.help:
		fmt.Fprint(env.Stdout, usage)
		return nil
	}
	if env.Memory.Add(startMemory) == nil {
		defer env.Memory.Add(-startMemory)
	}
	if err := env.CPU.Use(ctx, startCost); err != nil {
		return err
	}
	if cell.Needed(env) {
		return cell.Run(ctx, env, cellName(legacy))
	}
	return o.finish(ctx, env)
}

// cellName is the name of the cell of a shell. The engine counts neither memory nor time, so that in a
// pod it is a process of its own.
func cellName(legacy bool) string {
	if legacy {
		return "mongo"
	}
	return "mongosh"
}

func init() {
	for _, legacy := range []bool{false, true} {
		cell.Register(cellName(legacy), func(ctx context.Context, env *kit.Env) error {
			o, err := parseOptions(env, legacy)
			if err != nil {
				return err
			}
			return o.finish(ctx, env)
		})
	}
}

// finish runs the shell and gives its exit code.
func (o *options) finish(ctx context.Context, env *kit.Env) error {
	err := o.run(ctx, env)
	var quit errQuit
	switch {
	case errors.As(err, &quit):
		return kit.Exit(quit.code)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

const usage = `usage: mongosh [options] [address] [file...]

Address: a database, host[:port][/database], or mongodb://[user:password@]host[:port][/database]

  --host, --port, --quiet, --nodb, --shell, --norc, --version
  --eval <javascript>            evaluate it instead of reading commands
  -f, --file <script>            run a script
  -u, --username, -p, --password, --authenticationDatabase, --authenticationMechanism
  --tls, --tlsCAFile, --tlsCertificateKeyFile, --tlsAllowInvalidCertificates, --tlsAllowInvalidHostnames
`

func (o *options) appName() string {
	if o.legacy {
		return "MongoDB Shell"
	}
	return "mongosh " + mongoshVersion
}

func (o *options) run(ctx context.Context, env *kit.Env) error {
	var c *client
	if !o.noDB {
		var err error
		if c, err = o.connect(ctx, env); err != nil {
			return err
		}
	} else {
		o.target.db = ""
	}
	s, err := newSession(ctx, env, o, c)
	if err != nil {
		if c != nil {
			c.close()
		}
		return err
	}
	defer s.close()
	for _, code := range o.eval {
		if err := s.script("(shell eval)", code, true, exitEval); err != nil {
			return err
		}
	}
	for _, file := range o.files {
		data, err := env.ReadFile(file)
		if err != nil {
			return o.noFile(env, file)
		}
		if err := s.script(file, string(data), false, exitScript); err != nil {
			return err
		}
	}
	if (len(o.eval) > 0 || len(o.files) > 0) && !o.shell {
		return nil
	}
	if err := s.repl(env.Stdin, env.Terminal != nil); err != nil {
		return err
	}
	if o.legacy && !o.quiet {
		fmt.Fprintln(env.Stdout, "bye")
	}
	return nil
}

func (o *options) noFile(env *kit.Env, file string) error {
	if o.legacy {
		fmt.Fprintf(env.Stdout, "{\"s\":\"E\",  \"c\":\"-\",        \"id\":22779,   \"ctx\":\"js\",\"msg\":\"file "+
			"[%s] doesn't exist\"}\nfailed to load: %s\nexiting with code -3\n", file, file)
		return errQuit{exitScript}
	}
	fmt.Fprintf(env.Stderr, "Error: ENOENT: no such file or directory, open '%s'\n", file)
	return errQuit{1}
}

// connect opens the connection and authenticates.
func (o *options) connect(ctx context.Context, env *kit.Env) (*client, error) {
	t := o.target
	if o.legacy && !o.quiet {
		db := t.db
		if db == "test" {
			db = ""
		}
		fmt.Fprintf(env.Stdout, "MongoDB shell version v%s\nconnecting to: "+
			"mongodb://%s/%s?%scompressors=disabled&gssapiServiceName=mongodb\n", version, t.address, db, authSource(t))
	}
	var err error
	if t.tls, err = o.tls.config(env, t.address); err != nil {
		return nil, o.failed(env, "Error: "+err.Error(), err.Error())
	}
	c, err := dial(ctx, env, t, o.appName())
	var failed *connectError
	if errors.As(err, &failed) && ctx.Err() == nil {
		return nil, o.failed(env, failed.Error(), failed.legacy)
	}
	if err != nil {
		return nil, err
	}
	if t.user != "" {
		if err := c.auth(ctx, t.source, t.user, t.password, t.mechanism); err != nil {
			c.close()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, o.failed(env, "MongoServerError: "+err.Error(), err.Error())
		}
	}
	if !o.legacy && !o.quiet && env.Terminal != nil && len(o.eval) == 0 && len(o.files) == 0 {
		fmt.Fprintf(env.Stdout, "Connecting to:\t\tmongodb://%s/%s?directConnection=true\nUsing MongoDB:\t\t%s\n"+
			"Using Mongosh:\t\t%s\n\n", t.address, t.db, version, mongoshVersion)
	}
	if o.legacy && !o.quiet {
		fmt.Fprintf(env.Stdout, "Implicit session: session { \"id\" : %s }\nMongoDB server version: %s\n",
			value.ValueText(value.Of(c.session)), version)
	}
	return c, nil
}

func authSource(t *target) string {
	if t.user == "" {
		return ""
	}
	return "authSource=" + t.source + "&"
}

// failed reports why there is no connection.
func (o *options) failed(env *kit.Env, text, legacy string) error {
	if o.legacy {
		fmt.Fprintf(env.Stdout, "Error: %s :\nconnect@src/mongo/shell/mongo.js:374:17\n@(connect):2:6\nexception: "+
			"connect failed\nexiting with code 1\n", legacy)
	} else {
		fmt.Fprintln(env.Stderr, text)
	}
	return errQuit{1}
}

// script runs a whole script. An error in it ends the shell.
func (s *session) script(name, code string, show bool, legacyExit int) error {
	v, err := s.eval(name, code)
	if err == nil && show {
		err = s.show(v)
	}
	var quit errQuit
	if err == nil || errors.As(err, &quit) || s.ctx.Err() != nil {
		return err
	}
	if !s.options.legacy {
		fmt.Fprintln(s.env.Stderr, s.message(err))
		return errQuit{1}
	}
	fmt.Fprintf(s.env.Stdout, "uncaught exception: %s :\n@%s:1:1\n", s.message(err), name)
	if legacyExit == exitScript {
		fmt.Fprintf(s.env.Stdout, "failed to load: %s\n", name)
	}
	fmt.Fprintf(s.env.Stdout, "exiting with code %d\n", legacyExit-256)
	return errQuit{legacyExit}
}
