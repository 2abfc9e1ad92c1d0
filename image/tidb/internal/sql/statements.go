package sql

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// other runs what is no statement about data. It shows something, or changes some rows.
func (s *session) other(list []token) (shown *table, affected int64, err error) {
	r := &reader{list: list}
	switch {
	case r.take("BEGIN"), r.take("START", "TRANSACTION"):
		if err := s.commit(); err != nil {
			return nil, 0, err
		}
		s.open = true
		return nil, 0, s.srv.ready()
	case r.take("COMMIT"):
		return nil, 0, s.commit()
	case r.take("ROLLBACK"):
		return nil, 0, s.rollback(s.ctx)
	case r.take("USE"):
		db, err := r.name()
		if err != nil {
			return nil, 0, err
		}
		return nil, 0, s.UseDB(db)
	case r.take("SET"):
		return nil, 0, s.set(r)
	case r.take("SHOW"):
		t, err := s.show(r)
		return t, 0, err
	case r.take("DESCRIBE"), r.take("DESC"):
		t, err := s.describe(r)
		return t, 0, err
	case r.take("KILL"):
		return nil, 0, s.kill(r)
	}
	statements, err := s.define(r)
	if err != nil {
		return nil, 0, err
	}
	if err := s.commit(); err != nil { // A definition ends the transaction before it.
		return nil, 0, err
	}
	if err := s.srv.ready(); err != nil {
		return nil, 0, err
	}
	result, err := s.srv.data.Write(s.ctx, statements...)
	if err != nil {
		return nil, 0, err
	}
	return nil, result.Affected, nil
}

// define translates definitions.
func (s *session) define(r *reader) ([]kv.Statement, error) {
	db := s.database()
	plain := func(list []string, err error) (statements []kv.Statement, _ error) {
		for _, x := range list {
			statements = append(statements, kv.Statement{SQL: x})
		}
		return statements, err
	}
	switch {
	case r.take("CREATE", "TABLE"):
		if full, err := (&reader{list: r.list[r.pos:]}).target(db); err != nil {
			return nil, err
		} else if known, err := s.srv.hasDatabase(s.ctx, full); err != nil || !known {
			return nil, orUnknown(err, full)
		}
		return plain(createTable(db, r.list[r.pos:]))
	case r.take("ALTER", "TABLE"):
		return plain(alterTable(db, r.list[r.pos:]))
	case r.take("DROP", "TABLE"):
		return plain(dropTables(r, db))
	case r.take("TRUNCATE", "TABLE"), r.take("TRUNCATE"):
		full, err := r.table(db)
		return plain([]string{"DELETE FROM " + name(full)}, err)
	case r.take("CREATE", "INDEX"), r.take("CREATE", "UNIQUE", "INDEX"):
		i := index{unique: r.list[1].is("UNIQUE")}
		var err error
		if i.name, err = r.name(); err != nil || !r.take("ON") {
			return nil, syntaxError("ON is missing", r.peek().text)
		}
		full, err := r.table(db)
		if err != nil {
			return nil, err
		}
		i.columns, err = r.names()
		return plain([]string{createIndex(full, i, false)}, err)
	case r.take("DROP", "INDEX"):
		n, err := r.name()
		if err != nil || !r.take("ON") {
			return nil, syntaxError("ON is missing", r.peek().text)
		}
		full, err := r.table(db)
		return plain([]string{"DROP INDEX " + name(full+"."+n)}, err)
	case r.take("CREATE", "DATABASE"), r.take("CREATE", "SCHEMA"):
		maybe := r.take("IF", "NOT", "EXISTS")
		n, err := r.name()
		if err != nil {
			return nil, err
		}
		if _, err := fullName(n, "t"); err != nil {
			return nil, mysql.NewDefaultError(mysql.ER_WRONG_DB_NAME, n)
		}
		or := ""
		if known, err := s.srv.hasDatabase(s.ctx, n); err != nil {
			return nil, err
		} else if maybe {
			or = "OR IGNORE"
		} else if known {
			return nil, mysql.NewDefaultError(mysql.ER_DB_CREATE_EXISTS, n)
		}
		return []kv.Statement{{SQL: "INSERT " + or + ` INTO "#databases" VALUES (?)`, Args: []kv.Value{{V: n}}}}, nil
	case r.take("DROP", "DATABASE"), r.take("DROP", "SCHEMA"):
		return s.dropDatabase(r)
	case r.take("CREATE", "USER"), r.take("ALTER", "USER"), r.take("DROP", "USER"):
		return s.users(r)
	}
	words := list(r.list[r.pos:])
	if r.peek().is("GRANT", "REVOKE") {
		return nil, unsupported(words + ": every user may do everything")
	}
	return nil, unsupported(words)
}

// list is the first words of a statement.
func list(tokens []token) string {
	var words []string
	for _, t := range tokens[:min(3, len(tokens))] {
		words = append(words, t.text)
	}
	return strings.ToUpper(strings.Join(words, " "))
}

func orUnknown(err error, db string) error {
	if err != nil {
		return err
	}
	return mysql.NewDefaultError(mysql.ER_BAD_DB_ERROR, db)
}

// target is the database that a definition is for.
func (r *reader) target(db string) (string, error) {
	_ = r.take("IF", "NOT", "EXISTS")
	full, err := r.table(db)
	if err != nil {
		return "", err
	}
	d, _ := split(full)
	if d == "mysql" || d == "information_schema" {
		return "", mysql.NewDefaultError(mysql.ER_DBACCESS_DENIED_ERROR, "root", "%", d)
	}
	return d, nil
}

func dropTables(r *reader, db string) (list []string, err error) {
	maybe := ""
	if r.take("IF", "EXISTS") {
		maybe = "IF EXISTS "
	}
	for {
		full, err := r.table(db)
		if err != nil {
			return nil, err
		}
		list = append(list, "DROP TABLE "+maybe+name(full))
		if !r.takeSymbol(",") {
			return list, nil
		}
	}
}

func (s *session) dropDatabase(r *reader) ([]kv.Statement, error) {
	maybe := r.take("IF", "EXISTS")
	n, err := r.name()
	if err != nil {
		return nil, err
	}
	if lower := strings.ToLower(n); lower == "mysql" || lower == "information_schema" {
		return nil, mysql.NewDefaultError(mysql.ER_DBACCESS_DENIED_ERROR, s.user, "%", n)
	}
	if known, err := s.srv.hasDatabase(s.ctx, n); err != nil {
		return nil, err
	} else if !known && !maybe {
		return nil, mysql.NewDefaultError(mysql.ER_DB_DROP_EXISTS, n)
	}
	tables, err := s.srv.tables(s.ctx, n)
	if err != nil {
		return nil, err
	}
	statements := []kv.Statement{{SQL: `DELETE FROM "#databases" WHERE name = ?`, Args: []kv.Value{{V: n}}}}
	for _, t := range tables {
		statements = append(statements, kv.Statement{SQL: "DROP TABLE " + name(n+"."+t)})
	}
	return statements, nil
}

// users translates what is said about a user.
func (s *session) users(r *reader) ([]kv.Statement, error) {
	verb := r.list[0]
	maybe := r.take("IF", "NOT", "EXISTS") || r.take("IF", "EXISTS")
	t := r.peek()
	if !t.name() && t.kind != text {
		return nil, syntaxError("a user is missing", t.text)
	}
	r.pos++
	user := t.text
	if v := r.peek(); v.kind == variable { // The host, which may be in quotes: 'name'@'%'.
		if r.pos++; v.text == "@" {
			r.pos++
		}
	}
	if verb.is("DROP") {
		return []kv.Statement{{SQL: `DELETE FROM "#users" WHERE user = ?`, Args: []kv.Value{{V: user}}}}, nil
	}
	password := ""
	if r.take("IDENTIFIED", "BY") {
		if r.peek().kind != text {
			return nil, syntaxError("a password in quotes is missing", r.peek().text)
		}
		password = r.peek().text
		r.pos++
	}
	if !r.done() {
		return nil, unsupported(list(r.list[r.pos:]))
	}
	known, err := s.srv.hasUser(s.ctx, user)
	if err != nil {
		return nil, err
	}
	if known == verb.is("CREATE") && !maybe {
		return nil, mysql.NewError(mysql.ER_CANNOT_USER, fmt.Sprintf("Operation %s USER failed for '%s'@'%%'",
			strings.ToUpper(verb.text), user))
	}
	statement := `INSERT OR IGNORE INTO "#users" VALUES (?1, ?2)`
	if verb.is("ALTER") {
		statement = `UPDATE "#users" SET password = ?2 WHERE user = ?1`
	}
	return []kv.Statement{{SQL: statement, Args: []kv.Value{{V: user}, {V: password}}}}, nil
}

// set changes variables of the session.
func (s *session) set(r *reader) error {
	for {
		_ = r.take("SESSION") || r.take("LOCAL")
		switch {
		case r.take("NAMES"), r.take("CHARACTER", "SET"):
			r.pos++
			if r.take("COLLATE") {
				r.pos++
			}
		case r.take("TRANSACTION"), r.take("PASSWORD"), r.take("GLOBAL"):
			return unsupported("SET " + strings.ToUpper(r.list[r.pos-1].text))
		default:
			n := strings.ToLower(strings.TrimLeft(r.peek().text, "@"))
			n = strings.TrimPrefix(n, "session.")
			r.pos++
			if !r.takeSymbol("=") && !r.takeSymbol(":=") {
				return syntaxError("= is missing", r.peek().text)
			}
			if err := s.assign(n, r.peek().text); err != nil {
				return err
			}
			r.pos++
		}
		if r.done() {
			return nil
		}
		if !r.takeSymbol(",") {
			return syntaxError("this cannot be read", r.peek().text)
		}
	}
}

// maxVariables bounds what a session remembers.
const maxVariables = 200

func (s *session) assign(n, value string) error {
	if n == "autocommit" {
		on := value == "1" || strings.EqualFold(value, "on") || strings.EqualFold(value, "true")
		if on && s.manual {
			if err := s.commit(); err != nil {
				return err
			}
		}
		s.manual = !on
		return nil
	}
	if _, ok := s.variable(n); !ok || len(s.vars) >= maxVariables || len(value) > 1000 {
		return mysql.NewDefaultError(mysql.ER_UNKNOWN_SYSTEM_VARIABLE, n)
	}
	s.vars[n] = value
	return nil
}

// variable is the value of a variable by its name without @@.
func (s *session) variable(n string) (string, bool) {
	if v, ok := s.vars[n]; ok {
		return v, true
	}
	if n == "autocommit" {
		if s.manual {
			return "OFF", true
		}
		return "ON", true
	}
	v, ok := s.srv.variables()[n]
	return v, ok
}

// kill ends a connection.
func (s *session) kill(r *reader) error {
	_ = r.take("TIDB")
	_ = r.take("CONNECTION") || r.take("QUERY")
	id, err := strconv.ParseInt(r.peek().text, 10, 64)
	if err != nil {
		return syntaxError("the number of a connection is missing", r.peek().text)
	}
	if !s.srv.kill(id) {
		return mysql.NewDefaultError(mysql.ER_NO_SUCH_THREAD, id)
	}
	return nil
}

// seconds is how long something took.
func seconds(since time.Time) int64 { return int64(time.Since(since) / time.Second) }
