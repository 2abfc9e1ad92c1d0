package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	pageSize   = 4096
	maxPages   = 8192 // of a schema: 32 MiB
	maxSchemas = 8
	maxValue   = 128 << 10
	maxResult  = 8 << 20
	maxSQL     = 256 << 10
	// maxTime is how long the engine works on one statement, whatever the session has set.
	maxTime = 3 * time.Second
	// maxWait is how long a statement waits for its turn.
	maxWait = 30 * time.Second
)

// engine is a database.
type engine struct {
	name   string
	env    *kit.Env
	holder *kit.Holder
	db     *sql.DB
	conn   *sql.Conn
	turn   chan struct{} // full while somebody uses the connection

	mu      sync.Mutex
	schemas []string // besides public
	stated  int64

	commits, rollbacks, returned, written atomic.Int64
}

// connector opens the one connection that a database has.
type connector struct{ d *sqlite.Driver }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(":memory:") }
func (c connector) Driver() driver.Driver                        { return c.d }

// function is one that statements can call.
type function struct {
	args int32
	call func(args []driver.Value) driver.Value
}

// functions are those that a server has besides the engine's own.
func (s *server) functions() map[string]function {
	return map[string]function{
		"now":                  {0, func([]driver.Value) driver.Value { return time.Now().UTC().Format(timeFormat) }},
		"gen_random_uuid":      {0, func([]driver.Value) driver.Value { return uuid.NewString() }},
		"pg_is_in_recovery":    {0, func([]driver.Value) driver.Value { return int64(0) }},
		"match":                {2, func(a []driver.Value) driver.Value { return ilike(a[0], a[1]) }},
		"pg_size_pretty":       {1, func(a []driver.Value) driver.Value { return pretty(a[0]) }},
		"pg_terminate_backend": {1, func(a []driver.Value) driver.Value { return s.signal(a[0], true) }},
		"pg_cancel_backend":    {1, func(a []driver.Value) driver.Value { return s.signal(a[0], false) }},
	}
}

// newEngine makes an empty database.
func newEngine(ctx context.Context, env *kit.Env, holder *kit.Holder, name string, s *server) (*engine, error) {
	d := &sqlite.Driver{}
	for f, impl := range s.functions() {
		d.MustRegisterScalarFunction(f, impl.args,
			func(_ *sqlite.FunctionContext, a []driver.Value) (driver.Value, error) { return impl.call(a), nil })
	}
	e := &engine{name: name, env: env, holder: holder, db: sql.OpenDB(connector{d}), turn: make(chan struct{}, 1)}
	e.db.SetMaxOpenConns(1)
	var err error
	if e.conn, err = e.db.Conn(ctx); err != nil {
		return nil, err
	}
	for id, n := range map[int]int{
		lib.SQLITE_LIMIT_LENGTH: maxValue, lib.SQLITE_LIMIT_SQL_LENGTH: 4 * maxSQL, lib.SQLITE_LIMIT_EXPR_DEPTH: 200,
		lib.SQLITE_LIMIT_COLUMN: 200, lib.SQLITE_LIMIT_COMPOUND_SELECT: 50, lib.SQLITE_LIMIT_VDBE_OP: 100_000,
		lib.SQLITE_LIMIT_FUNCTION_ARG: 50, lib.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
		lib.SQLITE_LIMIT_VARIABLE_NUMBER: maxParams,
	} {
		if _, err := sqlite.Limit(e.conn, id, n); err != nil {
			return nil, err
		}
	}
	for _, p := range []string{
		"temp_store=MEMORY", "foreign_keys=ON", "case_sensitive_like=ON", fmt.Sprintf("page_size=%d", pageSize),
		fmt.Sprintf("max_page_count=%d", maxPages),
	} {
		if _, err := e.conn.ExecContext(ctx, "PRAGMA "+p); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *engine) close() {
	_ = e.conn.Close()
	_ = e.db.Close()
}

// take waits for the turn of a session.
func (e *engine) take(ctx context.Context) error {
	t := time.NewTimer(maxWait)
	defer t.Stop()
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-t.C:
		return failf(codeLock, "canceling statement due to lock timeout")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *engine) give() { <-e.turn }

// burn states the time that the engine has worked.
func (e *engine) burn(ctx context.Context, took time.Duration) {
	_ = e.env.CPU.Use(ctx, min(took, 200*time.Microsecond)) // what a real one takes for such a statement
	if b, ok := e.env.CPU.(kit.Burner); ok && took > 5*time.Millisecond {
		_ = b.Burn(ctx, took)
	}
}

// result is what a statement gave.
type result struct {
	columns []column
	rows    [][]any
	n       int64 // rows that it has changed
}

type column struct {
	name string
	oid  uint32
}

// run does a statement. The turn is the caller's.
func (e *engine) run(ctx context.Context, query string, rows bool, args []any) (*result, error) {
	within, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	start := time.Now()
	defer func() { e.burn(ctx, time.Since(start)) }()
	if !rows {
		r, err := e.conn.ExecContext(within, query, args...)
		if err != nil {
			return nil, err
		}
		n, err := r.RowsAffected()
		return &result{n: n}, err
	}
	got, err := e.conn.QueryContext(within, query, args...)
	if err != nil {
		return nil, err
	}
	defer got.Close()
	return read(got)
}

// read takes all rows of a result.
func read(got *sql.Rows) (*result, error) {
	kinds, err := got.ColumnTypes()
	if err != nil {
		return nil, err
	}
	r := &result{}
	for _, k := range kinds {
		r.columns = append(r.columns, column{k.Name(), oidOf(k.DatabaseTypeName())})
	}
	size := 0
	for got.Next() {
		row, into := make([]any, len(kinds)), make([]any, len(kinds))
		for i := range row {
			into[i] = &row[i]
		}
		if err := got.Scan(into...); err != nil {
			return nil, err
		}
		for i, v := range row {
			size += 16
			switch x := v.(type) {
			case string:
				size += len(x)
			case []byte:
				size += len(x)
			}
			r.columns[i].oid = guess(r.columns[i].oid, v)
		}
		if size > maxResult {
			return nil, failf(codeTooLarge, "the result is larger than %d MiB", maxResult>>20)
		}
		r.rows = append(r.rows, row)
	}
	return r, got.Err()
}

// state tells the container how large the database is.
func (e *engine) state(ctx context.Context) error {
	size := int64(0)
	for _, s := range append([]string{"main"}, e.names()...) {
		var n int64
		if err := e.conn.QueryRowContext(ctx, "PRAGMA "+quote(s)+".page_count").Scan(&n); err != nil {
			return err
		}
		size += n * pageSize
	}
	e.mu.Lock()
	d := size - e.stated
	e.stated = size
	e.mu.Unlock()
	if d == 0 {
		return nil
	}
	if err := e.holder.Add(int(d)); err != nil {
		return failf(codeOutOfMemory, "out of memory")
	}
	return nil
}

func (e *engine) size() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stated
}

// names are the schemas besides public.
func (e *engine) names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.schemas...)
}

// createSchema makes a schema: a database of the engine's own beside the first.
func (e *engine) createSchema(ctx context.Context, name string) error {
	if strings.HasPrefix(name, "pg_") || name == "main" || name == "temp" || name == "information_schema" {
		return failf("42939", "unacceptable schema name %q", name)
	}
	if len(e.names()) >= maxSchemas {
		return unsupported("more than %d schemas", maxSchemas)
	}
	for _, q := range []string{
		"ATTACH DATABASE ':memory:' AS " + quote(name),
		"PRAGMA " + quote(name) + fmt.Sprintf(".max_page_count=%d", maxPages),
	} {
		if _, err := e.conn.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	e.mu.Lock()
	e.schemas = append(e.schemas, name)
	e.mu.Unlock()
	return nil
}

func (e *engine) dropSchema(ctx context.Context, name string) error {
	if _, err := e.conn.ExecContext(ctx, "DETACH DATABASE "+quote(name)); err != nil {
		return unsupported("DROP SCHEMA in a transaction")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range e.schemas {
		if s == name {
			e.schemas = append(e.schemas[:i:i], e.schemas[i+1:]...)
			break
		}
	}
	return nil
}

// find is the schema that has a table; nothing if none has.
func (e *engine) find(ctx context.Context, u use) string {
	schemas := []string{"main"}
	if u.schema != "" {
		schemas = []string{inside(u.schema)}
	}
	for _, s := range schemas {
		var n int
		err := e.conn.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(s)+".sqlite_schema WHERE name = ? AND "+
			"type IN ('table', 'view')", u.table).Scan(&n)
		if err == nil && n > 0 {
			return s
		}
	}
	return ""
}

// described is a column of a table.
type described struct {
	name, declared string
	notNull        bool
	def            sql.NullString
	key            bool
}

// describe returns the columns of a table.
func (e *engine) describe(ctx context.Context, schema, table string) (list []described, err error) {
	rows, err := e.conn.QueryContext(ctx, `SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?, ?)`,
		table, inside(schema))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var d described
		var key int
		if err := rows.Scan(&d.name, &d.declared, &d.notNull, &d.def, &key); err != nil {
			return nil, err
		}
		d.key = key > 0
		list = append(list, d)
	}
	return list, rows.Err()
}

// guess is the type of a value whose column has none.
func guess(oid uint32, v any) uint32 {
	if oid != 0 {
		return oid
	}
	switch v.(type) {
	case int64:
		return 20
	case float64:
		return 701
	case []byte:
		return 17
	case string:
		return 25
	}
	return 0
}

// ilike is LIKE for which case does not matter.
func ilike(pattern, value driver.Value) driver.Value {
	p, ok := pattern.(string)
	if !ok || value == nil {
		return nil
	}
	if like(strings.ToLower(p), strings.ToLower(fmt.Sprint(value))) {
		return int64(1)
	}
	return int64(0)
}

// like matches % and _ in time that is bounded by the product of the lengths.
func like(p, s string) bool {
	pr, sr := []rune(p), []rune(s)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(sr) {
		switch {
		case i < len(pr) && pr[i] == '%':
			star, mark = i, j
			i++
		case i < len(pr) && (pr[i] == '_' || pr[i] == sr[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(pr) && pr[i] == '%' {
		i++
	}
	return i == len(pr)
}

func pretty(v driver.Value) driver.Value {
	n, ok := v.(int64)
	switch {
	case !ok:
		return nil
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

var errUserCancel = errors.New("the user has cancelled it")
