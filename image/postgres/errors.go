package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// The conditions that clients and people tell apart, by PostgreSQL's codes.
const (
	codeUnsupported      = "0A000"
	codeInvalidPassword  = "28P01"
	codeInvalidAuth      = "28000"
	codeNoDatabase       = "3D000"
	codeNoSchema         = "3F000"
	codeTooMany          = "53300"
	codeDiskFull         = "53100"
	codeOutOfMemory      = "53200"
	codeTooLarge         = "54000"
	codeCanceled         = "57014"
	codeShutdown         = "57P01"
	codeLock             = "55P03"
	codeSyntax           = "42601"
	codeNoTable          = "42P01"
	codeNoColumn         = "42703"
	codeNoFunction       = "42883"
	codeNoObject         = "42704"
	codeDuplicateTable   = "42P07"
	codeDuplicateObject  = "42710"
	codeDuplicateSchema  = "42P06"
	codeDenied           = "42501"
	codeAmbiguous        = "42702"
	codeUnique           = "23505"
	codeNotNull          = "23502"
	codeForeignKey       = "23503"
	codeCheck            = "23514"
	codeAborted          = "25P02"
	codeActive           = "25001"
	codeNone             = "25P01"
	codeBadText          = "22P02"
	codeProtocol         = "08P01"
	codeNoStatement      = "26000"
	codeNoPortal         = "34000"
	codeInternal         = "XX000"
	codeUnknownParameter = "42704"
	codeIdleTransaction  = "25P03"
)

// failure is an error as a client gets it.
type failure struct {
	severity, code, message, detail, hint string
	table, constraint                     string
}

func (f *failure) Error() string { return f.message }

func failf(code, format string, args ...any) *failure {
	return &failure{severity: "ERROR", code: code, message: fmt.Sprintf(format, args...)}
}

func unsupported(format string, args ...any) *failure {
	f := failf(codeUnsupported, format, args...)
	f.message += " is not supported"
	f.hint = "This server has the SQL that applications use most. docs/images.md tells what it has."
	return f
}

func (f *failure) response() *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{
		Severity: f.severity, SeverityUnlocalized: f.severity, Code: f.code, Message: f.message, Detail: f.detail,
		Hint: f.hint, TableName: f.table, ConstraintName: f.constraint,
	}
}

// said are errors of the engine, and what they are to clients. The first group of a pattern is in the message.
var said = []struct {
	pattern *regexp.Regexp
	code    string
	message string
}{
	{regexp.MustCompile(`no such table: (?:main\.)?([^( ]+)`), codeNoTable, `relation "%s" does not exist`},
	{regexp.MustCompile(`no such column: "?([^"( ]+)`), codeNoColumn, `column "%s" does not exist`},
	{regexp.MustCompile(`has no column named ([^( ]+)`), codeNoColumn, `column "%s" of the relation does not exist`},
	{regexp.MustCompile(`ambiguous column name: ([^( ]+)`), codeAmbiguous, `column reference "%s" is ambiguous`},
	{regexp.MustCompile(`near "(.*)": syntax error`), codeSyntax, `syntax error at or near "%s"`},
	{regexp.MustCompile(`incomplete input()`), codeSyntax, `syntax error at end of input%s`},
	{regexp.MustCompile(`unrecognized token: "(.*)"`), codeSyntax, `syntax error at or near "%s"`},
	{
		regexp.MustCompile(`(?:table|index|view) "?([^" (]+)"? already exists`), codeDuplicateTable,
		`relation "%s" already exists`,
	},
	{
		regexp.MustCompile(`there is already another table or index with this name: (\S+)`), codeDuplicateTable,
		`relation "%s" already exists`,
	},
	{regexp.MustCompile(`no such index: (\S+)`), codeNoObject, `index "%s" does not exist`},
	{regexp.MustCompile(`no such view: (\S+)`), codeNoTable, `view "%s" does not exist`},
	{regexp.MustCompile(`no such function: ([^( ]+)`), codeNoFunction, `function %s does not exist`},
	{
		regexp.MustCompile(`wrong number of arguments to function ([^( ]+)`), codeNoFunction,
		`function %s does not exist with so many arguments`,
	},
	{regexp.MustCompile(`unknown database "?([^" ]+)`), codeNoSchema, `schema "%s" does not exist`},
	{regexp.MustCompile(`no such savepoint: (\S+)`), "3B001", `savepoint "%s" does not exist`},
	{
		regexp.MustCompile(`NOT NULL constraint failed: (\S+)`), codeNotNull,
		`null value in column "%s" violates not-null constraint`,
	},
	{
		regexp.MustCompile(`FOREIGN KEY constraint failed()`), codeForeignKey,
		`insert, update or delete violates a foreign key constraint%s`,
	},
	{
		regexp.MustCompile(`CHECK constraint failed: (.+?)(?: \(\d+\))?$`), codeCheck,
		`new row violates check constraint "%s"`,
	},
	{
		regexp.MustCompile(`database or disk is full()`), codeDiskFull,
		`could not extend file: No space left on device%s`,
	},
	{regexp.MustCompile(`string or blob too big()`), codeTooLarge, `a value is larger than this server keeps%s`},
	{regexp.MustCompile(`out of memory()`), codeOutOfMemory, `out of memory%s`},
	{
		regexp.MustCompile(`(\d+) values for (?:\d+) columns`), codeSyntax,
		`INSERT has %s expressions, not one for each column`,
	},
}

var uniqueFailed = regexp.MustCompile(`UNIQUE constraint failed: ([^( ]+)`)

// errAborted answers what comes in a transaction that has failed.
func errAborted() error {
	return failf(codeAborted, "current transaction is aborted, commands ignored until end of transaction block")
}

// explain makes an error of the engine one for clients.
func explain(ctx context.Context, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	text := err.Error()
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(text, "interrupted") {
		if errors.Is(context.Cause(ctx), errUserCancel) {
			return failf(codeCanceled, "canceling statement due to user request")
		}
		return failf(codeCanceled, "canceling statement due to statement timeout")
	}
	if m := uniqueFailed.FindStringSubmatch(text); m != nil {
		table, column, _ := strings.Cut(m[1], ".")
		f := failf(codeUnique, `duplicate key value violates unique constraint "%s_%s_key"`, table, column)
		f.table, f.constraint = table, table+"_"+column+"_key"
		return f
	}
	for _, s := range said {
		if m := s.pattern.FindStringSubmatch(text); m != nil {
			return failf(s.code, s.message, m[1])
		}
	}
	return failf(codeInternal, "%s", strings.TrimPrefix(text, "SQL logic error: "))
}
