package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// MySQLPort is where mysqld listens.
	MySQLPort = 3306
	// initDir has the scripts that a new database begins with.
	initDir = "/docker-entrypoint-initdb.d"
	// maxScript bounds one of them.
	maxScript = 4 << 20
)

// MySQL is mysqld of a version, started as MySQL's image does: a new database in memory, which the variables and the
// scripts of /docker-entrypoint-initdb.d give users, databases and data.
func MySQL(version string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		log := &mysqlLog{w: env.Stderr}
		args := env.Args[1:]
		if len(args) > 0 && args[0] == "mysqld" {
			args = args[1:]
		}
		if len(args) > 0 {
			if args[0] != "--version" && args[0] != "-V" {
				log.Print("ERROR", fmt.Sprintf("mysqld: unknown option '%s'; there is --version", args[0]))
				return kit.Exit(7)
			}
			fmt.Fprintf(env.Stdout, "mysqld  Ver %s for Linux on x86_64 (MySQL Community Server)\n", version)
			return nil
		}
		data, err := kv.NewLocal(ctx)
		if err != nil {
			return err
		}
		defer data.Close()
		s := newServer(env, version, data, nil)
		s.log = log
		if kept, ok := env.Kept().([]byte); ok {
			err = data.Load(ctx, kept)
		} else {
			err = s.initialize(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				log.Print("ERROR", err.Error())
			}
			return kit.Exit(1)
		}
		env.Keep(func(ctx context.Context) (any, int64, error) {
			b, err := data.Dump(ctx)
			return b, int64(len(b)), err
		})
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		return s.accept(ctx, &wg, ":"+strconv.Itoa(MySQLPort), func() {
			log.Info(fmt.Sprintf("mysqld: ready for connections. Version: '%s'  port: %d", version, MySQLPort))
		})
	}
}

// initialize gives a new database what the variables and the scripts say.
func (s *Server) initialize(ctx context.Context) error {
	root := s.env.Getenv("MYSQL_ROOT_PASSWORD")
	if root == "" && s.env.Getenv("MYSQL_ALLOW_EMPTY_PASSWORD") == "" {
		return errors.New("the database is not initialized and no password is given; " +
			"set MYSQL_ROOT_PASSWORD or MYSQL_ALLOW_EMPTY_PASSWORD")
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	_, err := s.data.Write(ctx, kv.Statement{SQL: `DELETE FROM "#databases"`}, kv.Statement{
		SQL: `INSERT OR REPLACE INTO "#users" VALUES ('root', ?)`, Args: []kv.Value{{V: root}},
	})
	if err != nil {
		return err
	}
	db := s.env.Getenv("MYSQL_DATABASE")
	first := ""
	if db != "" {
		first = "CREATE DATABASE " + quote(db) + ";"
	}
	if user := s.env.Getenv("MYSQL_USER"); user != "" {
		first += "CREATE USER " + quote(user) + " IDENTIFIED BY " + phrase(s.env.Getenv("MYSQL_PASSWORD")) + ";"
	}
	if err := s.script(ctx, "", first); err != nil {
		return fmt.Errorf("MYSQL_DATABASE or MYSQL_USER: %w", err)
	}
	entries, err := s.env.FS.ReadDir(initDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if file := path.Join(initDir, e.Name()); path.Ext(file) == ".sql" {
			if err := s.scriptFile(ctx, db, file); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// scriptFile runs the statements of a file, as root.
func (s *Server) scriptFile(ctx context.Context, db, file string) error {
	text, err := s.env.ReadFile(file)
	if err != nil {
		return err
	}
	if len(text) > maxScript {
		return fmt.Errorf("a script may have at most %d bytes", maxScript)
	}
	s.log.Info("[Entrypoint]: running " + file)
	return s.script(ctx, db, string(text))
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func phrase(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// script runs the statements of a text, as root.
func (s *Server) script(ctx context.Context, db, text string) error {
	x := &session{srv: s, ctx: ctx, host: "localhost", user: "root", db: db, vars: map[string]string{}}
	list, err := lex(text)
	if err != nil {
		return err
	}
	from := 0
	for i := 0; i <= len(list); i++ {
		if i < len(list) && !list[i].symbol(";") {
			continue
		}
		if i > from {
			end := len(text)
			if i < len(list) {
				end = list[i].from
			}
			if _, _, err := x.run(text[list[from].from:end], nil, false); err != nil {
				_ = x.rollback(ctx) // What went wrong before says more.
				line := 1 + strings.Count(text[:list[from].from], "\n")
				return fmt.Errorf("line %d: %w", line, mysqlError(err))
			}
		}
		from = i + 1
	}
	return x.commit()
}

// mysqlLog writes lines as mysqld does.
type mysqlLog struct {
	mu sync.Mutex
	w  io.Writer
}

// Info implements [logger].
func (l *mysqlLog) Info(text string, fields ...any) { l.Print("Note", text, fields...) }

// Print implements [logger].
func (l *mysqlLog) Print(level, text string, fields ...any) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s 0 [%s] %s", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), level, text)
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&b, ", %v: %.2000q", fields[i], fmt.Sprint(fields[i+1]))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, b.String()+"\n")
}
