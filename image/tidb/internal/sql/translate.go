package sql

import (
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// surroundings are what a statement may ask for beside data.
type surroundings interface {
	database() string
	// value is what a function without arguments, such as now or database, returns at the moment.
	value(function string) (v any, ok bool)
	// setting is the value of a variable, such as @@version.
	setting(name string) (v any, ok bool)
}

// translation is a statement about data in SQLite's words.
type translation struct {
	sql     string
	params  int
	locking bool // it ended in FOR UPDATE
}

// translator goes through the tokens of a statement.
type translator struct {
	around surroundings
	list   []token
	pos    int
	out    []string
	params int
	writes bool
	tables []bool // for each open parenthesis: whether a list of tables is being read
}

// dml translates SELECT, INSERT, REPLACE, UPDATE and DELETE.
func dml(around surroundings, list []token) (t translation, err error) {
	list, t.locking = unlock(list)
	x := &translator{around: around, list: list, tables: []bool{false}}
	x.writes = !list[0].is("SELECT", "WITH", "VALUES") && !list[0].symbol("(")
	if err := x.head(); err != nil {
		return t, err
	}
	for x.pos < len(x.list) {
		if err := x.step(); err != nil {
			return t, err
		}
	}
	t.sql, t.params = joinWords(x.out), x.params
	return t, nil
}

// joinWords writes words with as little space between them as people use: what they wrote is the title of a column.
func joinWords(words []string) string {
	var b strings.Builder
	before := ""
	for _, w := range words {
		switch {
		case w == "":
			continue
		case before == "", w == ")", w == ",", strings.HasSuffix(before, "("):
		default:
			b.WriteByte(' ')
		}
		b.WriteString(w)
		before = w
	}
	return b.String()
}

// unlock takes FOR UPDATE, FOR SHARE and LOCK IN SHARE MODE off the end.
func unlock(list []token) ([]token, bool) {
	n := len(list)
	switch {
	case n > 2 && list[n-2].is("FOR") && list[n-1].is("UPDATE", "SHARE"):
		return list[:n-2], true
	case n > 3 && list[n-3].is("FOR") && list[n-2].is("UPDATE") && list[n-1].is("NOWAIT"):
		return list[:n-3], true
	case n > 4 && list[n-4].is("LOCK") && list[n-3].is("IN") && list[n-2].is("SHARE") && list[n-1].is("MODE"):
		return list[:n-4], true
	}
	return list, false
}

func (x *translator) peek(ahead int) token {
	if x.pos+ahead < len(x.list) {
		return x.list[x.pos+ahead]
	}
	return token{kind: symbol}
}

func (x *translator) emit(s ...string) { x.out = append(x.out, s...) }

// head translates the beginning of a statement that writes: up to the table.
func (x *translator) head() error {
	switch t := x.peek(0); {
	case t.is("INSERT", "REPLACE"):
		x.pos++
		for x.peek(0).is("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY") {
			x.pos++
		}
		or := ""
		if t.is("REPLACE") {
			or = "OR REPLACE"
		} else if x.peek(0).is("IGNORE") {
			or = "OR IGNORE"
			x.pos++
		}
		if x.peek(0).is("INTO") {
			x.pos++
		}
		x.emit("INSERT", or, "INTO")
		return x.table()
	case t.is("UPDATE"):
		x.pos++
		x.emit("UPDATE")
		if x.peek(0).is("IGNORE") {
			x.pos++
			x.emit("OR IGNORE")
		}
		return x.table()
	case t.is("DELETE") && !x.peek(1).is("FROM"):
		return unsupported("DELETE of several tables")
	}
	return nil
}

// stops are keywords after which no table is read any more, and no alias.
var stops = []string{
	"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "SET", "ON", "UNION", "SELECT", "VALUES", "USING", "JOIN", "INNER",
	"LEFT", "RIGHT", "CROSS", "NATURAL", "STRAIGHT_JOIN", "FOR", "LOCK", "EXCEPT", "INTERSECT", "WINDOW", "FROM",
	"PARTITION",
	"USE", "FORCE", "IGNORE", "AS", "VALUE", "OUTER", "FULL", "AND", "OR",
}

// operators are what SQLite calls them.
var operators = map[string]string{"&&": "AND", "||": "OR", "<=>": "IS"}

// step translates the next token.
func (x *translator) step() error {
	t := x.peek(0)
	switch {
	case t.symbol("("):
		x.tables = append(x.tables, false)
		if len(x.tables) > 100 {
			return syntaxError("too many parentheses", "")
		}
		x.pos++
		x.emit("(")
	case t.symbol(")"):
		if len(x.tables) == 1 {
			return syntaxError("there is a ) too many", "")
		}
		x.tables = x.tables[:len(x.tables)-1]
		x.pos++
		x.emit(")")
	case t.symbol(",") && x.tables[len(x.tables)-1]:
		x.pos++
		x.emit(",")
		return x.table()
	case t.symbol(";"):
		if x.pos++; x.pos < len(x.list) {
			return unsupported("several statements at once")
		}
	case t.symbol("!"):
		x.pos++
		x.emit("NOT")
	case t.kind == symbol:
		x.pos++
		if o, ok := operators[t.text]; ok {
			x.emit(o)
			return nil
		}
		x.emit(t.text)
	case t.kind == mark:
		x.pos++
		x.params++
		x.emit("?")
	case t.kind == text:
		x.pos++
		x.emit(literal(t.text))
	case t.kind == number:
		x.pos++
		x.emit(t.text)
	case t.kind == variable:
		x.pos++
		v, ok := x.around.setting(t.text)
		if !ok {
			return mysql.NewDefaultError(mysql.ER_UNKNOWN_SYSTEM_VARIABLE, strings.TrimLeft(t.text, "@"))
		}
		x.emit(literal(v))
		x.title(t.text, 1)
	case t.kind == quoted:
		return x.column()
	default:
		return x.word(t)
	}
	return nil
}

// word translates a keyword, a function or a name.
func (x *translator) word(t token) error {
	top := len(x.tables) - 1
	switch {
	case t.is("FROM") && x.peek(1).is("DUAL"):
		x.pos += 2
	case t.is("FROM", "JOIN", "STRAIGHT_JOIN"):
		x.pos++
		if t.is("STRAIGHT_JOIN") {
			t.text = "JOIN"
		}
		x.emit(t.text)
		x.tables[top] = true
		return x.table()
	case t.is("ON") && x.peek(1).is("DUPLICATE") && x.peek(2).is("KEY") && x.peek(3).is("UPDATE"):
		x.pos += 4
		x.emit("ON CONFLICT DO UPDATE SET")
		return x.onDuplicate()
	case t.is("DIV"):
		x.pos++
		x.emit("/")
	case t.is("VALUE") && x.writes && x.peek(1).symbol("("):
		x.pos++
		x.emit("VALUES")
	case t.is(stops...):
		x.tables[top] = false
		x.pos++
		x.emit(t.text)
	case x.peek(1).symbol("("):
		return x.function(t)
	case t.is("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_USER", "UTC_TIMESTAMP", "LOCALTIME"):
		x.pos++
		v, _ := x.around.value(strings.ToLower(t.text))
		x.emit(literal(v))
	case x.peek(1).symbol("."):
		return x.column()
	default:
		x.pos++
		x.emit(t.text)
	}
	return nil
}

// onDuplicate translates the rest: VALUES(column) is what would have been inserted.
func (x *translator) onDuplicate() error {
	for x.pos < len(x.list) {
		if x.peek(0).is("VALUES") && x.peek(1).symbol("(") && x.peek(2).name() && x.peek(3).symbol(")") {
			x.emit("excluded." + name(x.peek(2).text))
			x.pos += 4
			continue
		}
		if err := x.step(); err != nil {
			return err
		}
	}
	return nil
}

// table translates the name of a table, with its alias.
func (x *translator) table() error {
	t := x.peek(0)
	if t.symbol("(") {
		return nil // A subquery.
	}
	if !t.name() || t.kind == word && t.is("SELECT", "WHERE", "SET", "VALUES") {
		return syntaxError("a table is missing", t.text)
	}
	full, short, err := x.qualified()
	if err != nil {
		return err
	}
	alias := short
	if x.peek(0).is("AS") {
		x.pos++
		alias = x.peek(0).text
		x.pos++
	} else if a := x.peek(0); a.kind == quoted || a.kind == word && !a.is(stops...) {
		alias = a.text
		x.pos++
	}
	x.emit(name(full), "AS", name(alias))
	return nil
}

// qualified reads a name of a table: with its database, and without.
func (x *translator) qualified() (full, short string, err error) {
	db, short := x.around.database(), x.peek(0).text
	x.pos++
	if x.peek(0).symbol(".") && x.peek(1).name() {
		db, short = short, x.peek(1).text
		x.pos += 2
	}
	full, err = fullName(db, short)
	return full, short, err
}

// fullName is a table in the stores.
func fullName(db, table string) (string, error) {
	if db == "" {
		return "", mysql.NewDefaultError(mysql.ER_NO_DB_ERROR)
	}
	if table == "" || strings.ContainsAny(db+table, ".\x00\"") || len(db)+len(table) > 128 {
		return "", mysql.NewDefaultError(mysql.ER_WRONG_TABLE_NAME, table)
	}
	if lower := strings.ToLower(db); lower == "information_schema" || lower == "mysql" {
		return lower + "." + strings.ToLower(table), nil
	}
	return db + "." + table, nil
}

// column translates a name of a column: with its table, and even its database, or without.
func (x *translator) column() error {
	parts := []string{x.peek(0).text}
	x.pos++
	for x.peek(0).symbol(".") && (x.peek(1).name() || x.peek(1).symbol("*")) {
		parts = append(parts, x.peek(1).text)
		x.pos += 2
	}
	if len(parts) == 3 { // Tables go by their short names.
		parts = parts[1:]
	}
	for i, p := range parts {
		if p != "*" {
			parts[i] = name(p)
		}
	}
	x.emit(strings.Join(parts, "."))
	return nil
}

// renamed are functions that SQLite has under another name.
var renamed = map[string]string{
	"if": "iif", "char_length": "length", "character_length": "length", "lcase": "lower", "ucase": "upper",
	"greatest": "max", "least": "min", "mid": "substr", "ceiling": "ceil", "log2": "log2", "truncate": "round",
}

// undecided are functions whose value no two stores agree on.
var undecided = []string{
	"rand", "random", "randomblob", "date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff",
}

// function translates the name of a function, or all of it if it has no arguments.
func (x *translator) function(t token) error {
	lower := strings.ToLower(t.text)
	if v, ok := x.around.value(lower); ok && x.emptyCall() {
		begin := x.pos
		for !x.peek(0).symbol(")") {
			x.pos++
		}
		x.pos++
		x.emit(literal(v))
		x.title(t.text+"()", x.pos-begin)
		return nil
	}
	if x.writes {
		for _, f := range undecided {
			if f == lower {
				return unsupported(strings.ToUpper(lower) + "() in a statement that writes")
			}
		}
	}
	x.pos++
	if lower == "rand" {
		if !x.peek(1).symbol(")") {
			return unsupported("RAND(seed)")
		}
		x.pos += 2
		x.emit("(0.5 + random() / 18446744073709551616.0)")
		return nil
	}
	called := t.text
	if n, ok := renamed[lower]; ok {
		called = n
	}
	x.tables = append(x.tables, false)
	x.pos++
	x.emit(called + "(")
	return nil
}

// title names a column that is a value, as long as the words it came from stand alone in a list of columns.
func (x *translator) title(title string, words int) {
	before, after := token{}, x.peek(0)
	if x.pos > words {
		before = x.list[x.pos-words-1]
	}
	if len(x.tables) > 1 || x.writes || !before.is("SELECT") && !before.symbol(",") {
		return
	}
	if x.pos == len(x.list) || after.symbol(",") || after.symbol(";") || after.is("FROM", "LIMIT") {
		x.emit("AS", name(title))
	}
}

// emptyCall reports whether a call has no arguments but a number.
func (x *translator) emptyCall() bool {
	return x.peek(2).symbol(")") || x.peek(2).kind == number && x.peek(3).symbol(")")
}

// name is a name as SQLite takes it.
func name(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// literal is a value as SQLite takes it.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		v = strings.ReplaceAll(v, "\x00", "")
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}
	return fmt.Sprint(v)
}
