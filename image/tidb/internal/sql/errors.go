package sql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

// Error numbers that MySQL has no name for: they are TiDB's.
const (
	errPDTimeout   = 9001
	errTiKVTimeout = 9002
	errRegion      = 9005
	errConflict    = 9007
	errTooLarge    = 8004
)

// syntaxError says what is wrong with a statement, and where.
func syntaxError(what, near string) error {
	if len(near) > 80 {
		near = near[:80]
	}
	return mysql.NewError(mysql.ER_PARSE_ERROR, fmt.Sprintf("You have an error in your SQL syntax; check the manual "+
		"that corresponds to your server version for the right syntax to use: %s near '%s'", what, near))
}

// unsupported says that something is not there to be had.
func unsupported(what string) error {
	return mysql.NewDefaultError(mysql.ER_NOT_SUPPORTED_YET, what)
}

var (
	near      = regexp.MustCompile(`near "([^"]*)": syntax error`)
	unique    = regexp.MustCompile(`UNIQUE constraint failed: ([^ ,(]+)`)
	notNull   = regexp.MustCompile(`NOT NULL constraint failed: (\S+)`)
	noTable   = regexp.MustCompile(`no such (?:table|view): (\S+)`)
	noColumn  = regexp.MustCompile(`(?:no such column: (\S+)|has no column named (\S+))`)
	noFunc    = regexp.MustCompile(`no such function: (\S+)`)
	exists    = regexp.MustCompile(`(?:table|view) "?([^"\s]+)"? already exists`)
	hasIndex  = regexp.MustCompile(`index "?([^"\s]+)"? already exists`)
	hasColumn = regexp.MustCompile(`duplicate column name: (\S+)`)
	columns   = regexp.MustCompile(`has (\d+) columns but (\d+) values were supplied|(\d+) values for (\d+) columns`)
)

// mysqlError is an error as MySQL's protocol has it.
func mysqlError(err error) error {
	var mine *mysql.MyError
	var sql *kv.SQLError
	switch {
	case err == nil, errors.As(err, &mine):
		return err
	case errors.As(err, &sql):
		return databaseError(sql.Text)
	case errors.Is(err, kv.ErrLockWait):
		return mysql.NewDefaultError(mysql.ER_LOCK_WAIT_TIMEOUT)
	case errors.Is(err, kv.ErrConflict):
		return mysql.NewError(errConflict, "Write conflict, the leader of the region has changed [try again later]")
	case errors.Is(err, kv.ErrNoSuchTx):
		return mysql.NewError(mysql.ER_LOCK_DEADLOCK, "The transaction was rolled back because it was idle for too "+
			"long; try restarting transaction")
	case errors.Is(err, kv.ErrTooLarge):
		return mysql.NewError(errTooLarge, "Transaction is too large")
	case errors.Is(err, kv.ErrUnavailable):
		return mysql.NewError(errRegion, "Region is unavailable")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return mysql.NewError(errTiKVTimeout, "TiKV server timeout")
	}
	return mysql.NewError(errTiKVTimeout, "TiKV server timeout: "+err.Error())
}

// databaseError reads what SQLite says.
func databaseError(s string) error {
	find := func(re *regexp.Regexp) string {
		for _, g := range re.FindStringSubmatch(s) {
			if g != "" && !re.MatchString(g) {
				return g
			}
		}
		return ""
	}
	if m := unique.FindStringSubmatch(s); m != nil {
		_, key, _ := strings.Cut(m[1], ".")
		return mysql.NewError(mysql.ER_DUP_ENTRY, fmt.Sprintf("Duplicate entry for key '%s'", key))
	}
	switch {
	case notNull.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_BAD_NULL_ERROR, last(find(notNull)))
	case noTable.MatchString(s):
		db, table := split(find(noTable))
		return mysql.NewDefaultError(mysql.ER_NO_SUCH_TABLE, db, table)
	case noColumn.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_BAD_FIELD_ERROR, find(noColumn), "field list")
	case noFunc.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_SP_DOES_NOT_EXIST, "FUNCTION", find(noFunc))
	case exists.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_TABLE_EXISTS_ERROR, find(exists))
	case hasIndex.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_DUP_KEYNAME, last(find(hasIndex)))
	case hasColumn.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_DUP_FIELDNAME, find(hasColumn))
	case columns.MatchString(s):
		return mysql.NewDefaultError(mysql.ER_WRONG_VALUE_COUNT_ON_ROW, 1)
	case near.MatchString(s):
		return syntaxError("this cannot be read", find(near))
	case strings.Contains(s, "FOREIGN KEY constraint failed"):
		return mysql.NewError(mysql.ER_NO_REFERENCED_ROW_2, "Cannot add or update a child row: a foreign key "+
			"constraint fails")
	case strings.Contains(s, "CHECK constraint failed"):
		return mysql.NewError(3819, "Check constraint is violated.")
	case strings.Contains(s, "database or disk is full"):
		return mysql.NewError(mysql.ER_RECORD_FILE_FULL, "The store is full")
	case strings.Contains(s, "interrupted"):
		return mysql.NewError(3024, "Query execution was interrupted, maximum statement execution time exceeded")
	case strings.Contains(s, "incomplete input"), strings.Contains(s, "unrecognized token"):
		return syntaxError("this cannot be read", "")
	}
	return mysql.NewError(mysql.ER_UNKNOWN_ERROR, s)
}

// split splits a name into the database and the rest.
func split(name string) (db, rest string) {
	db, rest, ok := strings.Cut(strings.Trim(name, `"`), ".")
	if !ok {
		return "", db
	}
	return db, rest
}

// last is the last part of a name.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
