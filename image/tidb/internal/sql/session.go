package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

// statementCost is the CPU time that a statement is stated to take.
const statementCost = 150 * time.Microsecond

// session is one connection of a client. The protocol calls it, one call after the other.
type session struct {
	srv  *Server
	ctx  context.Context
	conn *server.Conn
	// answered says that the command has had its answer.
	answered func()
	id       int64
	host     string

	open     bool // BEGIN was said
	manual   bool // autocommit is off
	tx       kv.Transaction
	lastID   int64
	affected int64
	vars     map[string]string

	mu    sync.Mutex // guards what others look at
	user  string
	db    string
	query string
	since time.Time
}

var _ server.Handler = (*session)(nil)

// UseDB implements the command INIT_DB.
func (s *session) UseDB(db string) error {
	known, err := s.srv.hasDatabase(s.ctx, db)
	if err != nil {
		return mysqlError(err)
	}
	if !known {
		return mysql.NewDefaultError(mysql.ER_BAD_DB_ERROR, db)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db = db
	return nil
}

// HandleQuery implements the command QUERY.
func (s *session) HandleQuery(query string) (*mysql.Result, error) {
	return s.handle(query, nil, false)
}

// HandleFieldList implements a command that clients used to complete names with.
func (s *session) HandleFieldList(string, string) ([]*mysql.Field, error) {
	return nil, unsupported("COM_FIELD_LIST")
}

// HandleStmtPrepare implements the command STMT_PREPARE.
func (s *session) HandleStmtPrepare(query string) (params, columns int, _ any, err error) {
	list, err := lex(strings.Clone(query))
	if err != nil {
		return 0, 0, nil, err
	}
	for _, t := range list {
		if t.kind == mark {
			params++
		}
	}
	if params > 65535 {
		return 0, 0, nil, mysql.NewDefaultError(mysql.ER_PS_MANY_PARAM)
	}
	return params, 0, nil, nil
}

// HandleStmtExecute implements the command STMT_EXECUTE. The library wraps an error that it gets from here and then
// sends it without its number, so it is sent here.
func (s *session) HandleStmtExecute(_ any, query string, args []any) (*mysql.Result, error) {
	r, err := s.handle(query, args, true)
	if err != nil && s.conn.WriteValue(err) == nil {
		s.answered()
	}
	return r, err
}

// HandleStmtClose implements the command STMT_CLOSE.
func (s *session) HandleStmtClose(any) error { return nil }

// HandleOtherCommand refuses what is left.
func (s *session) HandleOtherCommand(cmd byte, _ []byte) error {
	if cmd == mysql.COM_SET_OPTION {
		return nil
	}
	return mysql.NewError(mysql.ER_UNKNOWN_COM_ERROR, fmt.Sprintf("command %d is not supported now", cmd))
}

// handle runs a statement, and tells how it went.
func (s *session) handle(query string, args []any, binaryProtocol bool) (*mysql.Result, error) {
	query = strings.Clone(query) // The packet is used again.
	s.mu.Lock()
	s.query, s.since = query, time.Now()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.query, s.since = "", time.Now()
	}()
	begun := time.Now()
	if s.srv.env.CPU.Use(s.ctx, statementCost) != nil {
		return nil, mysql.NewDefaultError(mysql.ER_SERVER_SHUTDOWN)
	}
	r, kind, err := s.run(query, args, binaryProtocol)
	err = mysqlError(err)
	s.srv.metrics.done(kind, time.Since(begun), err)
	if err != nil {
		return nil, err
	}
	if s.open || s.tx != nil {
		s.conn.SetInTransaction()
		r.Status |= mysql.SERVER_STATUS_IN_TRANS
	} else {
		s.conn.ClearInTransaction()
	}
	if !s.manual {
		r.Status |= mysql.SERVER_STATUS_AUTOCOMMIT
	}
	return r, nil
}

// run runs a statement. kind is what it was, for who counts.
func (s *session) run(query string, args []any, binaryProtocol bool) (r *mysql.Result, kind string, err error) {
	list, err := lex(query)
	if err != nil {
		return nil, "Other", err
	}
	for len(list) > 0 && list[len(list)-1].symbol(";") {
		list = list[:len(list)-1]
	}
	if len(list) == 0 {
		return nil, "Other", mysql.NewDefaultError(mysql.ER_EMPTY_QUERY)
	}
	if list[0].is("SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "VALUES") || list[0].symbol("(") {
		r, err := s.data(list, args, binaryProtocol)
		return r, strings.ToUpper(list[0].text[:1]) + strings.ToLower(list[0].text[1:]), err
	}
	if len(args) > 0 {
		return nil, "Other", unsupported("parameters in this statement")
	}
	t, affected, err := s.other(list)
	if err != nil {
		return nil, "Other", err
	}
	if t != nil {
		return t.result(binaryProtocol), "Show", nil
	}
	return &mysql.Result{AffectedRows: uint64(affected)}, "Other", nil
}

// data runs a statement about data.
func (s *session) data(list []token, args []any, binaryProtocol bool) (*mysql.Result, error) {
	if r, ok, err := s.sleep(list); ok {
		if err != nil {
			return nil, err
		}
		return r.result(binaryProtocol), nil
	}
	t, err := dml(s, list)
	if err != nil {
		return nil, err
	}
	if t.params != len(args) {
		return nil, mysql.NewDefaultError(mysql.ER_WRONG_ARGUMENTS, "EXECUTE")
	}
	statement := kv.Statement{SQL: t.sql}
	for _, a := range args {
		statement.Args = append(statement.Args, kv.Value{V: argument(a)})
	}
	reads := list[0].is("SELECT", "WITH", "VALUES") || list[0].symbol("(")
	r, err := s.send(statement, reads, t.locking)
	if err != nil {
		return nil, err
	}
	if reads {
		shown := table{columns: r.Columns}
		for _, row := range r.Rows {
			values := make([]any, len(row))
			for i, v := range row {
				values[i] = v.V
			}
			shown.rows = append(shown.rows, values)
		}
		return shown.result(binaryProtocol), nil
	}
	answer := &mysql.Result{AffectedRows: uint64(r.Affected)}
	s.affected = r.Affected
	if list[0].is("INSERT", "REPLACE") && r.Affected > 0 {
		s.lastID = r.LastID - r.Affected + 1 // MySQL tells the first of several.
		answer.InsertId = uint64(s.lastID)
	}
	return answer, nil
}

// argument is a parameter as a value.
func argument(a any) any {
	switch v := a.(type) {
	case nil, int64, float64:
		return v
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		return int64(v)
	case float32:
		return float64(v)
	case mysql.TypedBytes:
		return argument(append([]byte(nil), v.Bytes...))
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return v
	}
	return fmt.Sprint(a)
}

// send has the stores run a statement, in the transaction if there is one.
func (s *session) send(statement kv.Statement, reads, locking bool) (*kv.Result, error) {
	if err := s.srv.ready(); err != nil {
		return nil, err
	}
	inside := s.open || s.manual
	if inside && s.tx == nil && (!reads || locking) {
		tx, err := s.srv.data.Begin(s.ctx)
		if err != nil {
			return nil, err
		}
		s.tx = tx
	}
	switch {
	case s.tx != nil:
		r, err := s.tx.Run(s.ctx, statement)
		var said *kv.SQLError
		if err != nil && !errors.As(err, &said) { // It is lost.
			_ = s.tx.Rollback(s.ctx)
			s.tx, s.open = nil, false
		}
		return r, err
	case reads:
		return s.srv.data.Read(s.ctx, statement)
	}
	return s.srv.data.Write(s.ctx, statement)
}

// commit ends a transaction, if there is one.
func (s *session) commit() error {
	tx := s.tx
	s.tx, s.open = nil, false
	if tx == nil {
		return nil
	}
	return tx.Commit(s.ctx)
}

func (s *session) rollback(ctx context.Context) error {
	tx := s.tx
	s.tx, s.open = nil, false
	if tx == nil {
		return nil
	}
	return tx.Rollback(ctx)
}

// sleep answers SELECT SLEEP(n).
func (s *session) sleep(list []token) (t table, ok bool, err error) {
	if len(list) != 5 || !list[0].is("SELECT") || !list[1].is("SLEEP") || list[3].kind != number {
		return t, false, nil
	}
	d, err := time.ParseDuration(list[3].text + "s")
	if err != nil {
		return t, true, syntaxError("a number of seconds is missing", list[3].text)
	}
	select {
	case <-time.After(min(d, time.Hour)):
	case <-s.ctx.Done():
		return t, true, mysql.NewDefaultError(mysql.ER_SERVER_SHUTDOWN)
	}
	return table{[]string{"SLEEP(" + list[3].text + ")"}, [][]any{{int64(0)}}}, true, nil
}

func (s *session) database() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db
}

// value implements [surroundings].
func (s *session) value(function string) (any, bool) {
	now := time.Now().UTC()
	switch function {
	case "now", "current_timestamp", "sysdate", "localtime", "localtimestamp", "utc_timestamp":
		return now.Format(time.DateTime), true
	case "curdate", "current_date", "utc_date":
		return now.Format(time.DateOnly), true
	case "curtime", "current_time", "utc_time":
		return now.Format(time.TimeOnly), true
	case "unix_timestamp":
		return now.Unix(), true
	case "database", "schema":
		if db := s.database(); db != "" {
			return db, true
		}
		return nil, true
	case "user", "session_user", "system_user":
		return s.user + "@" + s.host, true
	case "current_user":
		return s.user + "@%", true
	case "version":
		return s.srv.mysqlVersion(), true
	case "tidb_version":
		if s.srv.pd == nil {
			return nil, false
		}
		return "Release Version: " + s.srv.version + "\nStore: tikv", true
	case "connection_id":
		return s.id, true
	case "last_insert_id":
		return s.lastID, true
	case "row_count":
		return s.affected, true
	case "uuid":
		return uuid(), true
	}
	return nil, false
}

// setting implements [surroundings].
func (s *session) setting(variable string) (any, bool) {
	n := strings.ToLower(strings.TrimLeft(variable, "@"))
	n = strings.TrimPrefix(strings.TrimPrefix(n, "session."), "global.")
	v, ok := s.variable(n)
	return v, ok
}
