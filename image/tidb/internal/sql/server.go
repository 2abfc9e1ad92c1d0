package sql

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
	"github.com/aiopslab/aiopslab/image/tidb/internal/logs"
	"github.com/aiopslab/aiopslab/kit"
)

// Port is MySQL's, and StatusPort serves /status and /metrics.
const (
	Port       = 4000
	StatusPort = 10080
)

const (
	maxConnections = 500
	// maxPacket bounds one command of a client.
	maxPacket = 4 << 20
	// pdPatience is how long a server goes on without PD.
	pdPatience = 5 * time.Second
	pdEvery    = time.Second
	farewell   = 500 * time.Millisecond
)

// Server is one TiDB server, or one MySQL server.
type Server struct {
	env     *kit.Env
	log     logger
	version string
	data    kv.Data
	pd      *kv.PD // nil for a server with a database of its own
	metrics *metrics
	wire    *server.Server

	mu       sync.Mutex
	sessions map[int64]*connection
	lastID   int64
	heard    time.Time // PD, at last
	tso      uint64
}

// logger writes lines of a log: a text, with keys and values in turn.
type logger interface {
	Info(text string, fields ...any)
	Print(level, text string, fields ...any)
}

// connection is a session with the way to end it.
type connection struct {
	*session
	end func()
}

// Main is tidb-server of a version.
func Main(version string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		f := pflag.NewFlagSet("tidb-server", pflag.ContinueOnError)
		f.SetOutput(env.Stderr)
		shown := f.BoolP("version", "V", false, "print the version")
		store := f.String("store", "tikv", "the kind of store: tikv")
		path := f.String("path", "", "the addresses of PD, with commas between them")
		host := f.String("host", "0.0.0.0", "where to listen")
		port := f.StringP("port", "P", strconv.Itoa(Port), "the port for clients")
		status := f.String("status", strconv.Itoa(StatusPort), "the port for status and metrics")
		f.String("advertise-address", "", "where others reach it")
		f.String("config", "", "a configuration file")
		f.String("log-slow-query", "", "the file for slow queries")
		if err := f.Parse(env.Args[1:]); err != nil {
			return kit.Exit(1)
		}
		if *shown {
			fmt.Fprintf(env.Stdout, "Release Version: %s\nStore: tikv\n", version)
			return nil
		}
		if *store != "tikv" || *path == "" {
			fmt.Fprintln(env.Stderr, "tidb-server: it takes --store=tikv and --path=ADDRESS-OF-PD")
			return kit.Exit(1)
		}
		transport := env.HTTPTransport()
		transport.MaxIdleConnsPerHost = 64
		client := &http.Client{Transport: transport}
		defer client.CloseIdleConnections()
		pd := &kv.PD{HTTP: client, Seeds: kv.Endpoints(*path)}
		s := newServer(env, version, &kv.Client{HTTP: client, PD: pd}, pd)
		return s.run(ctx, net.JoinHostPort(*host, *port), net.JoinHostPort(*host, *status))
	}
}

func newServer(env *kit.Env, version string, data kv.Data, pd *kv.PD) *Server {
	s := &Server{
		env: env, log: logs.New(env.Stdout, "server.go"), version: version, data: data, pd: pd,
		sessions: map[int64]*connection{},
	}
	s.metrics = newMetrics(s)
	s.wire = server.NewServerWithAuth(s.mysqlVersion(), mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil,
		nil, &authentication{})
	return s
}

func (s *Server) mysqlVersion() string {
	if s.pd == nil {
		return s.version
	}
	return "8.0.11-TiDB-" + s.version
}

func (s *Server) run(ctx context.Context, address, status string) error {
	s.log.Info("Welcome to TiDB.", "Release Version", s.version)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.follow(ctx) })
	for address, h := range map[string]http.Handler{status: s.status()} {
		ln, err := s.env.Net.Listen("tcp", address)
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
		defer srv.Close()
		wg.Go(func() { _ = srv.Serve(ln) })
	}
	if err := s.bootstrap(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	return s.accept(ctx, &wg, address, func() {
		s.log.Info("server is running MySQL protocol", "addr", address)
	})
}

// accept serves clients at an address until the context ends. Ready is called when it listens.
func (s *Server) accept(ctx context.Context, wg *sync.WaitGroup, address string, ready func()) error {
	ln, err := s.env.Net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	ready()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return kit.IgnoreClosed(err)
		}
		wg.Go(func() { s.serve(ctx, c) })
	}
}

// follow asks PD for the time, again and again: without it no statement may run.
func (s *Server) follow(ctx context.Context) {
	failing := false
	for {
		t, err := s.pd.Timestamp(ctx)
		s.mu.Lock()
		if err == nil {
			s.heard, s.tso = time.Now(), t.TSO
		}
		s.mu.Unlock()
		if err != nil && !failing && ctx.Err() == nil {
			s.log.Print("ERROR", "get timestamp from PD failed", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(pdEvery):
		}
	}
}

// ready reports whether statements may run.
func (s *Server) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pd != nil && time.Since(s.heard) > pdPatience {
		return mysql.NewError(errPDTimeout, "PD server timeout")
	}
	return nil
}

// schema is what every cluster has.
var schema = []string{
	`CREATE TABLE IF NOT EXISTS "#databases" (name TEXT PRIMARY KEY NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS "#users" (user TEXT PRIMARY KEY NOT NULL, password TEXT NOT NULL)`,
	`CREATE VIEW IF NOT EXISTS "mysql.user" AS SELECT '%' AS Host, user AS User, ` +
		`CASE password WHEN '' THEN '' ELSE '*' END AS authentication_string FROM "#users"`,
	`CREATE VIEW IF NOT EXISTS "information_schema.schemata" AS SELECT 'def' AS CATALOG_NAME, name AS SCHEMA_NAME, ` +
		`'utf8mb4' AS DEFAULT_CHARACTER_SET_NAME, 'utf8mb4_bin' AS DEFAULT_COLLATION_NAME FROM "#databases"`,
	`CREATE VIEW IF NOT EXISTS "information_schema.tables" AS SELECT 'def' AS TABLE_CATALOG, ` +
		`substr(name, 1, instr(name, '.') - 1) AS TABLE_SCHEMA, substr(name, instr(name, '.') + 1) AS TABLE_NAME, ` +
		`'BASE TABLE' AS TABLE_TYPE, 'InnoDB' AS ENGINE FROM sqlite_master ` +
		`WHERE type = 'table' AND instr(name, '.') > 0`,
	`CREATE VIEW IF NOT EXISTS "information_schema.columns" AS SELECT 'def' AS TABLE_CATALOG, ` +
		`substr(m.name, 1, instr(m.name, '.') - 1) AS TABLE_SCHEMA, ` +
		`substr(m.name, instr(m.name, '.') + 1) AS TABLE_NAME, c.name AS COLUMN_NAME, c.cid + 1 AS ORDINAL_POSITION, lower(c.type) AS COLUMN_TYPE, ` +
		`CASE c."notnull" WHEN 0 THEN 'YES' ELSE 'NO' END AS IS_NULLABLE ` +
		`FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND instr(m.name, '.') > 0`,
	`INSERT OR IGNORE INTO "#databases" VALUES ('test')`,
}

// bootstrap waits for the stores and gives them what every cluster has.
func (s *Server) bootstrap(ctx context.Context) error {
	for failing := false; ; failing = true {
		err := s.prepare(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !failing {
			s.log.Print("WARN", "the stores are not ready, try again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pdEvery / 4):
		}
	}
}

func (s *Server) prepare(ctx context.Context) error {
	rows, err := s.read(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'information_schema.columns'`)
	if err != nil {
		return err
	}
	if rows[0][0] == int64(1) {
		return nil
	}
	var list []kv.Statement
	for _, x := range schema {
		list = append(list, kv.Statement{SQL: x})
	}
	list = append(list, kv.Statement{SQL: `INSERT OR IGNORE INTO "#users" VALUES ('root', '')`})
	_, err = s.data.Write(ctx, list...)
	return err
}

// serve is the life of a connection.
func (s *Server) serve(ctx context.Context, c net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer func() { // Frames that make no sense must not take the server with them.
		if p := recover(); p != nil {
			s.log.Print("ERROR", "connection running loop panic", "err", p, "stack", string(debug.Stack()))
		}
	}()
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	x := &session{srv: s, ctx: ctx, host: host, vars: map[string]string{}, since: time.Now()}
	s.mu.Lock()
	full := len(s.sessions) >= maxConnections
	s.lastID++
	x.id = s.lastID
	if !full {
		s.sessions[x.id] = &connection{x, cancel}
	}
	s.mu.Unlock()
	if full {
		s.log.Print("ERROR", "too many connections", "max connections", maxConnections)
		return
	}
	defer func() {
		s.mu.Lock()
		delete(s.sessions, x.id)
		s.mu.Unlock()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		_ = x.rollback(end)
	}()
	limited := &limitedConn{Conn: c}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // For the handshake.
	limited.left = 64 << 10
	conn, err := s.wire.NewCustomizedConn(limited, credentials{s, x}, x)
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	x.conn, x.answered = conn, func() { limited.mute = true }
	for !conn.Closed() {
		limited.left, limited.mute = maxPacket, false
		if err := conn.HandleCommand(); err != nil {
			return
		}
	}
}

// limitedConn ends a connection whose client sends too much at once.
type limitedConn struct {
	net.Conn
	left int
	mute bool // what is still written for this command is dropped: it is answered
}

func (l *limitedConn) Write(b []byte) (int, error) {
	if l.mute {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (l *limitedConn) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the packet is too large")
	}
	n, err := l.Conn.Read(b)
	l.left -= n
	return n, err
}

// credentials are the users' passwords.
type credentials struct {
	s *Server
	x *session
}

// GetCredential implements the check of a password. Nobody knows that of a user that there is not.
func (c credentials) GetCredential(user string) (server.Credential, bool, error) {
	credential := server.Credential{AuthPluginName: mysql.AUTH_NATIVE_PASSWORD, Passwords: []string{rand.Text()}}
	rows, err := c.s.read(c.x.ctx, `SELECT password FROM "#users" WHERE user = ?`, user)
	if err != nil {
		return credential, false, mysqlError(err)
	}
	if len(rows) != 1 {
		return credential, true, nil
	}
	credential.Passwords[0] = fmt.Sprint(rows[0][0])
	return credential, true, nil
}

// OnAuthSuccess notes who it is.
func (c credentials) OnAuthSuccess(conn *server.Conn) error {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	c.x.user = conn.GetUser()
	return nil
}

// OnAuthFailure logs it.
func (c credentials) OnAuthFailure(conn *server.Conn, err error) {
	c.s.log.Print("WARN", "connection authentication failed", "user", conn.GetUser(), "host", c.x.host, "error", err)
}

// authentication is the library's, which panics when a password is sent for a user who has none.
type authentication struct {
	server.DefaultAuthenticationProvider
}

// Authenticate compares what a client has sent with the password.
func (a *authentication) Authenticate(c *server.Conn, plugin string, data []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = server.ErrAccessDenied
		}
	}()
	return a.DefaultAuthenticationProvider.Authenticate(c, plugin, data)
}

// kill ends a connection.
func (s *Server) kill(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sessions[id]
	if c != nil {
		c.end()
	}
	return c != nil
}

// processes are the connections.
func (s *Server) processes(full bool) *table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &table{columns: []string{"Id", "User", "Host", "db", "Command", "Time", "State", "Info"}}
	for id, c := range s.sessions {
		c.mu.Lock()
		var db, info any
		if c.db != "" {
			db = c.db
		}
		command := "Sleep"
		if c.query != "" {
			q := strings.ToValidUTF8(c.query, "?")
			if !full && len(q) > 100 {
				q = q[:100]
			}
			command, info = "Query", q
		}
		t.rows = append(t.rows, []any{id, c.user, c.host, db, command, seconds(c.since), "autocommit", info})
		c.mu.Unlock()
	}
	slices.SortFunc(t.rows, func(a, b []any) int { return cmp.Compare(a[0].(int64), b[0].(int64)) })
	return t
}
