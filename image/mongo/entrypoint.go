package mongo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/shell"
	"github.com/aiopslab/aiopslab/kit"
)

const initDir = "/docker-entrypoint-initdb.d"

// script is the entry script's name in what it prints.
const script = "/usr/local/bin/docker-entrypoint.sh"

// entrypoint is the image's entry script: it sets a new database up with the first user and the
// scripts of the init directory, and becomes the command it is given.
func entrypoint(ctx context.Context, env *kit.Env) error {
	command := env.Args[1:]
	if len(command) == 0 || strings.HasPrefix(command[0], "-") {
		command = append([]string{"mongod"}, command...)
	}
	if path.Base(command[0]) != "mongod" {
		return exec(ctx, env, command)
	}
	e := *env // It stays the same process.
	e.Args = command
	o, err := parseOptions(&e)
	if err != nil { // Mongod says what is wrong.
		return Mongod(ctx, &e)
	}
	user, password := env.Getenv("MONGO_INITDB_ROOT_USERNAME"), env.Getenv("MONGO_INITDB_ROOT_PASSWORD")
	if (user == "") != (password == "") {
		fmt.Fprint(env.Stderr, "error: missing 'MONGO_INITDB_ROOT_USERNAME' or 'MONGO_INITDB_ROOT_PASSWORD'\n       "+
			"both must be specified for a user to be created\n")
		return kit.Exit(1)
	}
	scripts, err := initScripts(env)
	if err != nil {
		return err
	}
	dir := env.Path(o.text("storage.dbPath", "/data/db"))
	if (user != "" || len(scripts) > 0) && isNew(env, dir) {
		if err := initialize(ctx, env, o, dir, user, password, scripts); err != nil {
			return err
		}
	}
	if user != "" && o["security.authorization"] == "" {
		e.Args = append(e.Args, "--auth")
	}
	if o["net.bindIp"] == "" && o["net.bindIpAll"] == "" {
		e.Args = append(e.Args, "--bind_ip_all")
	}
	return Mongod(ctx, &e)
}

// exec runs another command of the image and ends as it does.
func exec(ctx context.Context, env *kit.Env, command []string) error {
	p, err := env.Procs.Start(ctx, env.Child(command...))
	if err != nil {
		fmt.Fprintf(env.Stderr, "%s: %v\n", script, err)
		return kit.Exit(kit.ExitNotFound)
	}
	return kit.Exit(p.Wait())
}

// initScripts returns the scripts of the init directory by name.
func initScripts(env *kit.Env) ([]string, error) {
	entries, err := env.FS.ReadDir(initDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".sh" || ext == ".js" {
			list = append(list, initDir+"/"+e.Name())
		}
	}
	slices.Sort(list)
	return list, nil
}

// isNew reports whether a data directory holds no database yet.
func isNew(env *kit.Env, dir string) bool {
	for _, name := range []string{"WiredTiger", "journal", "local.0", storageFile} {
		if _, err := env.FS.Stat(dir + "/" + name); err == nil {
			return false
		}
	}
	return true
}

// readyTimeout is how long the server may take to start for its initialization.
const readyTimeout = 30 * time.Second

// initialize runs a server for nobody else, without authentication, while it creates the first user
// and runs the scripts.
func initialize(ctx context.Context, env *kit.Env, o settings, dir, user, password string, scripts []string) error {
	temp := env.Child("mongod", "--bind_ip", "127.0.0.1", "--port", "27017", "--dbpath", dir)
	if file := o["systemLog.path"]; file != "" {
		temp.Args = append(temp.Args, "--logpath", file, "--logappend")
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- kit.Run(inner, Mongod, temp) }()
	fail := func(err error) error {
		stop()
		<-ended
		return err
	}
	if err := ready(inner, env, ended); err != nil {
		return fail(err)
	}
	if user != "" {
		js := fmt.Sprintf("db.createUser({user: %s, pwd: %s, roles: [{role: 'root', db: 'admin'}]})", jsString(user),
			jsString(password))
		if code := kit.Run(inner, shell.Mongo, env.Child("mongo", "--quiet", "admin", "--eval", js)); code != 0 {
			return fail(kit.Exit(code))
		}
	}
	db := env.Getenv("MONGO_INITDB_DATABASE")
	if db == "" {
		db = "test"
	}
	for _, file := range scripts {
		fmt.Fprintf(env.Stdout, "%s: running %s\n", script, file)
		if code := runInit(inner, env, file, db); code != 0 {
			return fail(kit.Exit(code))
		}
		fmt.Fprintln(env.Stdout)
	}
	stop()
	<-ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprint(env.Stdout, "\nMongoDB init process complete; ready for start up.\n\n")
	return nil
}

// runInit runs one script and returns its exit code.
func runInit(ctx context.Context, env *kit.Env, file, db string) int {
	if path.Ext(file) == ".js" {
		return kit.Run(ctx, shell.Mongo, env.Child("mongo", "--quiet", "127.0.0.1:27017/"+db, file))
	}
	child := env.Child("bash", file)
	p, err := env.Procs.Start(ctx, child)
	if err != nil {
		fmt.Fprintf(env.Stderr, "%s: %v\n", script, err)
		return kit.ExitNotFound
	}
	return p.Wait()
}

// ready waits until the server takes connections.
func ready(ctx context.Context, env *kit.Env, ended chan int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		conn, err := env.Net.DialContext(ctx, "tcp", "127.0.0.1:27017")
		if err == nil {
			return conn.Close()
		}
		select {
		case code := <-ended:
			ended <- code
			return kit.Exit(max(code, 1))
		case <-ctx.Done():
			fmt.Fprintf(env.Stderr, "\nerror: mongod does not appear to have stayed running -- perhaps it "+
				"had an error?\n\n")
			return kit.Exit(1)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// jsString writes a text as a JavaScript string.
func jsString(s string) string {
	data, err := bson.MarshalExtJSON(bson.D{{Key: "s", Value: s}}, false, false)
	if err != nil {
		return `""`
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(data), `{"s":`), "}")
}
