package kv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite" // It registers the driver as well.
	lib "modernc.org/sqlite/lib"
)

const (
	// maxPages bounds the database: pages of 4 KiB.
	maxPages = 8192
	// maxRows and maxAnswer bound what one statement may return.
	maxRows   = 100_000
	maxAnswer = 8 << 20
	// maxStatement bounds one statement with its arguments, and maxCommand a transaction.
	maxStatement = 1 << 20
	maxCommand   = 4 << 20
	// statementTime is how long a statement may compute.
	statementTime = 2 * time.Second
)

// SQLError is what the database says of a statement.
type SQLError struct {
	Text string `json:"text"`
}

func (e *SQLError) Error() string { return e.Text }

// engine is a database in memory. A transaction that is open on it may be broken off by a command that comes from
// elsewhere.
type engine struct {
	mu   sync.Mutex
	db   *sql.DB
	conn *sql.Conn
	open int // which transaction is open; 0 is none
	last int // which was opened last
}

func newEngine(ctx context.Context) (*engine, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	e := &engine{db: db}
	if e.conn, err = db.Conn(ctx); err == nil {
		err = e.confine(ctx)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// confine bounds what statements can reach: nothing but this database, and not too much of it.
func (e *engine) confine(ctx context.Context) error {
	for id, limit := range map[int]int{
		lib.SQLITE_LIMIT_ATTACHED: 0, lib.SQLITE_LIMIT_LENGTH: maxAnswer, lib.SQLITE_LIMIT_SQL_LENGTH: maxStatement,
		lib.SQLITE_LIMIT_EXPR_DEPTH: 200, lib.SQLITE_LIMIT_COMPOUND_SELECT: 50,
	} {
		if _, err := sqlite.Limit(e.conn, id, limit); err != nil {
			return err
		}
	}
	for _, pragma := range []string{
		fmt.Sprintf("max_page_count=%d", maxPages), "temp_store=MEMORY", "cache_size=-512", "trusted_schema=OFF",
		"foreign_keys=ON",
	} {
		if _, err := e.conn.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) close() {
	if e.conn != nil {
		_ = e.conn.Close()
	}
	_ = e.db.Close()
}

// begin opens a transaction and returns its number.
func (e *engine) begin(ctx context.Context) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.breakOff(); err != nil {
		return 0, err
	}
	if _, err := e.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return 0, err
	}
	e.last++
	e.open = e.last
	return e.open, nil
}

// errBrokenOff says that a transaction is no longer open.
var errBrokenOff = errors.New("the transaction was broken off because the leader has changed")

// inside runs a statement in a transaction.
func (e *engine) inside(ctx context.Context, tx int, s Statement) (*Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != tx {
		return nil, errBrokenOff
	}
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return e.run(ctx, s)
}

// end takes a transaction back.
func (e *engine) end(tx int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != tx {
		return errBrokenOff
	}
	return e.breakOff()
}

// commit makes what was done in a transaction last.
func (e *engine) commit(tx int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != tx {
		return errBrokenOff
	}
	if _, err := e.conn.ExecContext(context.Background(), "COMMIT"); err != nil {
		_ = e.breakOff()
		return &SQLError{err.Error()}
	}
	e.open = 0
	return nil
}

func (e *engine) breakOff() error {
	if e.open == 0 {
		return nil
	}
	e.open = 0
	_, err := e.conn.ExecContext(context.Background(), "ROLLBACK")
	return err
}

// read runs a statement that changes nothing.
func (e *engine) read(ctx context.Context, s Statement) (*Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return e.run(ctx, s)
}

// apply runs all statements, or none. The leader has run them before, within the time that a statement may take; here
// no clock decides, since all stores must come to the same end.
func (e *engine) apply(statements []Statement) (results []*Result, failed error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx := context.Background()
	if err := e.breakOff(); err != nil {
		return nil, err
	}
	if _, err := e.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	for _, s := range statements {
		r, err := e.run(ctx, s)
		if err != nil {
			_, back := e.conn.ExecContext(ctx, "ROLLBACK")
			return nil, errors.Join(err, back)
		}
		results = append(results, r)
	}
	if _, err := e.conn.ExecContext(ctx, "COMMIT"); err != nil {
		_, _ = e.conn.ExecContext(ctx, "ROLLBACK")
		return nil, &SQLError{err.Error()}
	}
	return results, nil
}

// run runs one statement.
func (e *engine) run(ctx context.Context, s Statement) (*Result, error) {
	if err := allowed(s.SQL); err != nil {
		return nil, err
	}
	args := make([]any, len(s.Args))
	for i, a := range s.Args {
		args[i] = a.V
	}
	r := &Result{}
	if !returnsRows(s.SQL) {
		done, err := e.conn.ExecContext(ctx, s.SQL, args...)
		if err != nil {
			return nil, explain(ctx, err)
		}
		r.Affected, _ = done.RowsAffected()
		r.LastID, _ = done.LastInsertId()
		return r, nil
	}
	rows, err := e.conn.QueryContext(ctx, s.SQL, args...)
	if err != nil {
		return nil, explain(ctx, err)
	}
	defer rows.Close()
	if r.Columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	size := 0
	for rows.Next() {
		row := make([]any, len(r.Columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, explain(ctx, err)
		}
		values := make([]Value, len(row))
		for i, x := range row {
			values[i] = Value{normal(x)}
		}
		size += Statement{Args: values}.size()
		if r.Rows = append(r.Rows, values); len(r.Rows) > maxRows || size > maxAnswer {
			return nil, &SQLError{"the answer is too large; ask for less with LIMIT"}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, explain(ctx, err)
	}
	return r, nil
}

// explain says what the database said, or that time was up.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &SQLError{"Query execution was interrupted, maximum statement execution time exceeded"}
	}
	return &SQLError{err.Error()}
}

// first is the first word of a statement, in capitals.
func first(statement string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(statement, " \t\r\n("), " ")
	return strings.ToUpper(strings.TrimSpace(word))
}

func returnsRows(statement string) bool {
	w := first(statement)
	return w == "SELECT" || w == "WITH" || w == "VALUES"
}

// changes reports whether a statement may change the data.
func changes(statement string) bool { return !returnsRows(statement) }

// allowed refuses what is no statement about data and tables: SQLite has commands that open files.
func allowed(statement string) error {
	if len(statement) > maxStatement || strings.ContainsRune(statement, 0) {
		return &SQLError{"the statement is too large"}
	}
	words := strings.Fields(strings.ToUpper(statement))
	if len(words) == 0 || several(statement) {
		return &SQLError{"near \";\": syntax error"}
	}
	switch w := first(statement); w {
	case "SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE":
	case "CREATE", "DROP", "ALTER":
		if len(words) < 2 || !(strings.HasPrefix(words[1], "TABLE") || words[1] == "INDEX" || words[1] == "UNIQUE" ||
			words[1] == "VIEW") {
			return &SQLError{"near \"" + w + "\": syntax error"}
		}
	default:
		return &SQLError{"near \"" + w + "\": syntax error"}
	}
	lower := strings.ToLower(statement)
	for _, name := range []string{"sqlite_dbpage", "sqlite_stmt", "bytecode(", "tables_used(", "load_extension"} {
		if strings.Contains(lower, name) {
			return &SQLError{"no such table: " + name}
		}
	}
	return nil
}

// several reports whether a text has more than one statement: a semicolon that is neither in quotes nor its end.
func several(text string) bool {
	text = strings.TrimRight(text, "; \t\r\n")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ';':
			return true
		case '\'', '"', '`', '[':
			end := c
			if c == '[' {
				end = ']'
			}
			n := strings.IndexByte(text[i+1:], end)
			if n < 0 {
				return true
			}
			i += n + 1
		}
	}
	return false
}

// dump is the whole database; load puts one in place.
func (e *engine) dump() (data []byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.breakOff(); err != nil {
		return nil, err
	}
	err = e.conn.Raw(func(c any) error {
		data, err = c.(interface{ Serialize() ([]byte, error) }).Serialize()
		return err
	})
	return data, err
}

func (e *engine) load(ctx context.Context, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.breakOff(); err != nil {
		return err
	}
	err := e.conn.Raw(func(c any) error {
		return c.(interface{ Deserialize(b []byte) error }).Deserialize(data)
	})
	if err != nil {
		return err
	}
	return e.confine(ctx)
}
