package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/image/internal/inlet"
	"github.com/aiopslab/aiopslab/kit"
)

// server is a cluster of databases, as PostgreSQL calls it.
type server struct {
	env      *kit.Env
	log      *journal
	holder   *kit.Holder
	settings settings
	roles    *roles
	started  time.Time
	engines  map[string]*engine

	mu       sync.Mutex
	sessions map[int32]*session
	nextPID  int32
	closing  bool
}

// settings are what variables and the command line say.
type settings struct {
	port           string
	user, password string
	database       string
	trust          bool
	maxConnections int
}

const passwordMissing = `Error: Database is uninitialized and superuser password is not specified.
       You must specify POSTGRES_PASSWORD to a non-empty value for the
       superuser. For example, "-e POSTGRES_PASSWORD=password" on "docker run".

       You may also use "POSTGRES_HOST_AUTH_METHOD=trust" to allow all
       connections without a password. This is *not* recommended.
`

// readSettings returns what is wrong as PostgreSQL would say it.
func readSettings(env *kit.Env, args []string) (settings, error) {
	s := settings{
		port: "5432", user: env.Getenv("POSTGRES_USER"), password: env.Getenv("POSTGRES_PASSWORD"),
		database: env.Getenv("POSTGRES_DB"), trust: env.Getenv("POSTGRES_HOST_AUTH_METHOD") == "trust",
		maxConnections: 100,
	}
	if s.user == "" {
		s.user = "postgres"
	}
	if s.database == "" {
		s.database = s.user
	}
	if s.password == "" && !s.trust {
		return s, errors.New(strings.TrimSuffix(passwordMissing, "\n"))
	}
	for i := 0; i < len(args); i++ {
		var name, value string
		next := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch {
		case args[i] == "-p":
			name, value = "port", next()
		case args[i] == "-c":
			name, value, _ = strings.Cut(next(), "=")
		case strings.HasPrefix(args[i], "--"):
			name, value, _ = strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		default:
			return s, fmt.Errorf("postgres: invalid argument: %q", args[i])
		}
		if err := s.set(strings.ReplaceAll(name, "-", "_"), value); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *settings) set(name, value string) error {
	n, err := strconv.Atoi(value)
	switch name {
	case "port":
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("FATAL:  invalid value for parameter \"port\": %q", value)
		}
		s.port = value
	case "max_connections":
		if err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("FATAL:  invalid value for parameter \"max_connections\": %q; want 1 to 1000", value)
		}
		s.maxConnections = n
	case "shared_buffers", "work_mem", "log_statement", "listen_addresses", "fsync", "synchronous_commit",
		"full_page_writes", "shared_preload_libraries", "track_activity_query_size", "pg_stat_statements.track":
		// What they tune is not here.
	default:
		return fmt.Errorf("FATAL:  unrecognized configuration parameter %q", name)
	}
	return nil
}

// Entrypoint is the image's entry script: it becomes the command that it is given, which is the server if it is only
// options.
func Entrypoint(ctx context.Context, env *kit.Env) error {
	command := env.Args[1:]
	if path.Base(env.Args[0]) == "postgres" || len(command) == 0 || strings.HasPrefix(command[0], "-") {
		command = append([]string{"postgres"}, command...)
	}
	if path.Base(command[0]) == "postgres" {
		return serve(ctx, env, command[1:])
	}
	p, err := env.Procs.Start(ctx, env.Child(command...))
	if missing, ok := errors.AsType[*kit.ExecError](err); ok {
		fmt.Fprintf(env.Stderr, "/usr/local/bin/docker-entrypoint.sh: %v\n", err)
		return kit.Exit(missing.ExitCode())
	}
	if err != nil {
		return err
	}
	return kit.Exit(p.Wait())
}

// firstPID is the process ID that the first connection has.
const firstPID = 60

func serve(ctx context.Context, env *kit.Env, args []string) error {
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-V") {
		fmt.Fprintf(env.Stdout, "postgres (PostgreSQL) %s\n", Version)
		return nil
	}
	set, err := readSettings(env, args)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return kit.Exit(1)
	}
	s := &server{
		env: env, log: &journal{out: env.Stderr}, holder: kit.NewExactHolder(env), settings: set, started: env.Since(),
		roles: &roles{all: map[string]*role{}}, engines: map[string]*engine{}, sessions: map[int32]*session{},
		nextPID: firstPID,
	}
	defer s.holder.Release()
	env.Keep(kit.NotKept)
	var password *string
	if set.password != "" {
		password = &set.password
	}
	if err := s.roles.set(set.user, true, true, true, password); err != nil {
		return err
	}
	for _, name := range []string{"postgres", set.database} {
		if s.engines[name] != nil {
			continue
		}
		e, err := newEngine(ctx, env, s.holder, name, s)
		if err != nil {
			return fmt.Errorf("open database %s: %w", name, err)
		}
		defer e.close()
		s.engines[name] = e
	}
	s.remember()
	return s.run(ctx)
}

func (s *server) run(ctx context.Context) error {
	pid := int32(s.env.PID)
	if err := s.initialize(ctx); err != nil {
		return err
	}
	s.log.line(pid, "LOG", "starting PostgreSQL %s on x86_64-pc-linux-gnu, 64-bit", Version)
	ln, err := s.env.Net.Listen("tcp", ":"+s.settings.port)
	if err != nil {
		s.log.line(pid, "LOG", "could not bind IPv4 address \"0.0.0.0\": %v", err)
		s.log.line(pid, "FATAL", "could not create any TCP/IP sockets")
		return kit.Exit(1)
	}
	s.log.line(pid, "LOG", "listening on IPv4 address \"0.0.0.0\", port %s", s.settings.port)
	s.log.line(pid, "LOG", "database system is ready to accept connections")
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, func() {
		ln.Close()
		s.closeAll()
	})
	defer stop()
	inlet.Serve(ctx, ln, func(c net.Conn) {
		wg.Go(func() { s.accept(ctx, c) })
	}, func(err error) { s.log.line(pid, "LOG", "could not accept new connection: %v", err) })
	s.closeAll()
	wg.Wait()
	s.log.line(pid, "LOG", "received fast shutdown request")
	s.log.line(pid, "LOG", "database system is shut down")
	return nil
}

// initDir has the scripts that a new database begins with.
const initDir = "/docker-entrypoint-initdb.d"

// initialize runs the scripts, as the first user.
func (s *server) initialize(ctx context.Context) error {
	entries, err := s.env.FS.ReadDir(initDir)
	if err != nil {
		return nil // There is no such directory.
	}
	for _, e := range entries {
		name := initDir + "/" + e.Name()
		if path.Ext(name) != ".sql" {
			if strings.HasPrefix(e.Name(), ".") || e.IsDir() {
				continue // What a mounted ConfigMap has besides its files.
			}
			fmt.Fprintf(s.env.Stdout, "/usr/local/bin/docker-entrypoint.sh: ignoring %s\n", name)
			continue
		}
		fmt.Fprintf(s.env.Stdout, "/usr/local/bin/docker-entrypoint.sh: running %s\n", name)
		data, err := s.env.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.script(ctx, string(data)); err != nil {
			fmt.Fprintf(s.env.Stderr, "psql:%s: ERROR:  %v\n", name, err)
			return kit.Exit(3)
		}
	}
	fmt.Fprint(s.env.Stdout, "\nPostgreSQL init process complete; ready for start up.\n\n")
	return nil
}

// script runs statements one after another.
func (s *server) script(ctx context.Context, text string) error {
	if len(text) > 16<<20 {
		return errors.New("the script has more than 16 MiB")
	}
	in := &session{
		server: s, engine: s.engines[s.settings.database],
		facts: facts{s.settings.user, s.settings.database, int32(s.env.PID)},
	}
	in.reset()
	defer in.leave(ctx)
	statements, err := lex(text)
	if err != nil {
		return err
	}
	for _, tokens := range statements {
		st, err := in.read(tokens)
		if err != nil {
			return err
		}
		if _, _, err := in.execute(ctx, st, nil); err != nil {
			return err
		}
	}
	return nil
}

// accept serves a connection.
func (s *server) accept(ctx context.Context, c net.Conn) {
	defer c.Close()
	n := &session{server: s, conn: c, since: time.Now()}
	n.reset()
	defer func() {
		if r := recover(); r != nil {
			s.log.line(n.pid, "LOG", "server process was terminated: %v", r)
		}
	}()
	n.serve(ctx)
}

// enter gives a session its number, if there is room for one more.
func (s *server) enter(n *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return &failure{severity: "FATAL", code: "57P03", message: "the database system is shutting down"}
	}
	if len(s.sessions) >= s.settings.maxConnections {
		return &failure{severity: "FATAL", code: codeTooMany, message: "sorry, too many clients already"}
	}
	s.nextPID++
	n.pid = s.nextPID
	s.sessions[n.pid] = n
	return nil
}

func (s *server) leave(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, n.pid)
}

// list are the sessions by their numbers.
func (s *server) list() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.sessions))
	for _, n := range s.sessions {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *session) int { return int(a.pid - b.pid) })
	return all
}

// signal cancels what a session does, or ends it. The result is for SQL.
func (s *server) signal(pid driver.Value, end bool) driver.Value {
	n, _ := pid.(int64)
	for _, one := range s.list() {
		if int64(one.pid) != n {
			continue
		}
		if end {
			one.terminate("terminating connection due to administrator command")
		} else {
			one.cancel()
		}
		return int64(1)
	}
	return int64(0)
}

func (s *server) closeAll() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	for _, n := range s.list() {
		n.terminate("terminating connection due to administrator command")
	}
}
