package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// maxParams is how many parameters a statement may have.
const maxParams = 1000

// statement is one that was read.
type statement struct {
	tokens []token
	verb   string // what it does: "select", "create table"
	tag    string // what a client is told that was done
	sql    string // for the engine; nothing if the session does it itself
	writes bool
	rows   bool // it gives rows

	params   int
	casts    map[int]uint32 // types that the statement gives to its parameters
	uses     []use
	catalogs []string // tables that tell of the server
}

// use is what a statement does with a table.
type use struct {
	right, schema, table string
}

// facts are what a statement may ask of its session.
type facts struct {
	user, database string
	pid            int32
}

// functions are those that statements may call, by the name that the engine has for them.
var functions = map[string]string{
	"count": "", "sum": "", "avg": "", "min": "", "max": "", "coalesce": "", "nullif": "", "lower": "", "upper": "",
	"length": "", "char_length": "length", "trim": "", "btrim": "trim", "ltrim": "", "rtrim": "", "replace": "",
	"substr": "", "substring": "substr", "round": "", "abs": "", "ceil": "", "ceiling": "ceil", "floor": "",
	"power": "", "sqrt": "", "mod": "", "greatest": "max", "least": "min", "string_agg": "group_concat", "concat": "",
	"row_number": "", "rank": "", "dense_rank": "", "lag": "", "lead": "", "first_value": "", "last_value": "",
	"now": "", "clock_timestamp": "now", "gen_random_uuid": "", "pg_terminate_backend": "", "pg_cancel_backend": "",
	"pg_size_pretty": "", "pg_is_in_recovery": "", "strpos": "instr", "position": "instr",
}

// beforeParen are words that stand before a parenthesis and are no functions.
var beforeParen = strings.Fields(`and or not in exists values on using from where as key unique check references over by
	select case when then else distinct into set returning having join union all except intersect between like ilike is
	primary foreign constraint default filter partition with varchar char character varying numeric decimal float
	timestamp cast add column rows range limit offset if only generated`)

// servers are the tables that tell of the server, as they are called within the engine.
var servers = []string{
	"pg_stat_activity", "pg_stat_database", "pg_database", "pg_tables", "pg_roles", "pg_user", "pg_settings",
	"pg_namespace", "information_schema_tables", "information_schema_columns", "information_schema_schemata",
}

// translator turns the tokens of a statement into SQL of the engine.
type translator struct {
	facts
	st    *statement
	in    []token
	out   []string
	opens []int // where the expressions with open parentheses begin in out
	prim  int   // where the last complete expression begins in out

	from []int  // depths of parentheses at which a list of tables is open
	next string // the right that is needed for the table that comes next
}

// translate reads a statement.
func translate(tokens []token, f facts) (*statement, error) {
	st := &statement{tokens: tokens, casts: map[int]uint32{}}
	if err := st.classify(); err != nil {
		return nil, err
	}
	if st.tag == "" {
		return st, nil // The session does it.
	}
	in := tokens
	var err error
	switch st.verb {
	case "create table":
		in, err = serials(tokens)
	case "create index":
		in, err = indexed(tokens)
	case "truncate":
		in, err = truncated(tokens)
	}
	if err != nil {
		return nil, err
	}
	t := &translator{facts: f, st: st, in: in, prim: -1}
	for i := 0; i < len(in); {
		n, err := t.token(i)
		if err != nil {
			return nil, err
		}
		i += n
	}
	if len(t.opens) > 0 {
		return nil, failf(codeSyntax, "syntax error at end of input")
	}
	st.sql = strings.Join(t.out, " ")
	return st, nil
}

// verbs are the statements that the engine does, by their first words, and what clients are told of them.
var verbs = []struct {
	words, tag   string
	writes, rows bool
}{
	{"select", "SELECT", false, true},
	{"values", "SELECT", false, true},
	{"with", "SELECT", false, true},
	{"insert into", "INSERT", true, false},
	{"update", "UPDATE", true, false},
	{"delete from", "DELETE", true, false},
	{"create table", "CREATE TABLE", true, false},
	{"create unique index", "CREATE INDEX", true, false},
	{"create index", "CREATE INDEX", true, false},
	{"create view", "CREATE VIEW", true, false},
	{"drop table", "DROP TABLE", true, false},
	{"drop index", "DROP INDEX", true, false},
	{"drop view", "DROP VIEW", true, false},
	{"alter table", "ALTER TABLE", true, false},
	{"truncate", "TRUNCATE TABLE", true, false},
	// The session does these itself.
	{"create schema", "", true, false},
	{"drop schema", "", true, false},
	{"create user", "", true, false},
	{"create role", "", true, false},
	{"alter user", "", true, false},
	{"alter role", "", true, false},
	{"drop user", "", true, false},
	{"drop role", "", true, false},
	{"grant", "", true, false},
	{"revoke", "", true, false},
	{"set", "", false, false},
	{"reset", "", false, false},
	{"show", "", false, true},
	{"discard", "", false, false},
	{"deallocate", "", false, false},
	{"begin", "", false, false},
	{"start transaction", "", false, false},
	{"commit", "", false, false},
	{"end", "", false, false},
	{"rollback", "", false, false},
	{"abort", "", false, false},
	{"savepoint", "", false, false},
	{"release", "", false, false},
}

// classify finds out what a statement is.
func (st *statement) classify() error {
	var first []string
	for _, t := range st.tokens[:min(3, len(st.tokens))] {
		if t.kind != word {
			break
		}
		first = append(first, t.text)
	}
	line := strings.Join(first, " ") + " "
	for _, v := range verbs {
		if strings.HasPrefix(line, v.words+" ") {
			st.verb, st.tag, st.writes, st.rows = v.words, v.tag, v.writes, v.rows
			if v.words == "create unique index" {
				st.verb = "create index"
			}
			st.look()
			return nil
		}
	}
	if len(first) == 0 {
		return failf(codeSyntax, "syntax error at or near %q", st.tokens[0].text)
	}
	for _, known := range []string{
		"copy", "create", "alter", "drop", "explain", "vacuum", "analyze", "lock", "listen", "notify", "unlisten",
		"prepare", "execute", "declare", "fetch", "close", "comment", "do", "call", "cluster", "reindex", "refresh",
		"import", "merge", "reassign", "security", "checkpoint", "load", "move", "table",
	} {
		if first[0] == known {
			return unsupported("%s", strings.ToUpper(strings.TrimSpace(line)))
		}
	}
	return failf(codeSyntax, "syntax error at or near %q", first[0])
}

// look finds what changes the kind of a statement: RETURNING, WITH that writes, FOR UPDATE.
func (st *statement) look() {
	for i, t := range st.tokens {
		switch {
		case t.is("returning") && st.verb != "create table":
			st.rows = true
		case st.verb == "with" && t.is("insert", "update", "delete") && i > 0 && !st.tokens[i-1].is("for"):
			st.writes = true
			if !slices.ContainsFunc(st.tokens, func(t token) bool { return t.is("returning") }) {
				st.rows = false
				st.tag = strings.ToUpper(t.text)
			}
		case t.is("for") && st.rows && i+1 < len(st.tokens) && st.tokens[i+1].is("update", "share", "no", "key"):
			st.writes = true // It keeps others waiting.
		}
	}
}

// at returns a token, or none.
func (t *translator) at(i int) token {
	if i < 0 || i >= len(t.in) {
		return token{kind: sign}
	}
	return t.in[i]
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (t *translator) emit(s string) {
	t.prim = len(t.out)
	t.out = append(t.out, s)
}

// token translates what begins at i and returns how many tokens that were.
func (t *translator) token(i int) (int, error) {
	tok := t.in[i]
	switch tok.kind {
	case text:
		t.emit(literal(tok.text))
	case number:
		t.emit(tok.text)
	case param:
		n, err := strconv.Atoi(tok.text)
		if err != nil || n < 1 || n > maxParams {
			return 0, failf("42P02", "there is no parameter $%s", tok.text)
		}
		t.st.params = max(t.st.params, n)
		t.emit("?" + tok.text)
	case quoted:
		if n := t.table(i); n > 0 {
			return n, nil
		}
		t.emit(quote(tok.text))
	case word:
		return t.word(i)
	case sign:
		return t.sign(i)
	}
	return 1, nil
}

func (t *translator) sign(i int) (int, error) {
	switch tok := t.in[i]; tok.text {
	case "(":
		start := len(t.out)
		if before := t.at(i - 1); before.kind == word && functionOf(before.text) != "" && start > 0 {
			start--
		}
		if len(t.opens) > 200 {
			return 0, failf(codeTooLarge, "parentheses nest too deep")
		}
		t.opens = append(t.opens, start)
		t.out = append(t.out, "(")
	case ")":
		if len(t.opens) == 0 {
			return 0, failf(codeSyntax, `syntax error at or near ")"`)
		}
		t.out = append(t.out, ")")
		t.prim = t.opens[len(t.opens)-1]
		t.opens = t.opens[:len(t.opens)-1]
		for len(t.from) > 0 && t.from[len(t.from)-1] > len(t.opens) {
			t.from = t.from[:len(t.from)-1]
		}
	case "::":
		return t.cast(i)
	case "[", "]", "~", "~*", "!~", "!~~*", "@", "#", "^", "!", "?", ":", "&", "|":
		return 0, unsupported("the operator %s", tok.text)
	case ",":
		t.out = append(t.out, ",")
		if len(t.from) > 0 && t.from[len(t.from)-1] == len(t.opens) {
			t.next = "SELECT"
		}
	default:
		t.out = append(t.out, tok.text)
	}
	return 1, nil
}

// typeAt reads the name of a type and returns what is known of it, and how many tokens it has.
func typeAt(in []token, i int) (name string, n int) {
	var words []string
	for _, t := range in[i:min(len(in), i+4)] {
		if t.kind != word {
			break
		}
		words = append(words, t.text)
	}
	if len(words) == 0 {
		return "", 0
	}
	for n = len(words); n > 0; n-- {
		name = strings.Join(words[:n], " ")
		if name == "timestamp without time zone" {
			return "timestamp", n
		}
		for _, known := range typeOf {
			if known.name == name {
				return name, n
			}
		}
	}
	return "", 0
}

// affinities are the types that a value has to be made into. The others are kept as texts.
var affinities = map[uint32]string{
	pgtype.Int2OID: "INTEGER", pgtype.Int4OID: "INTEGER", pgtype.Int8OID: "INTEGER", pgtype.Float4OID: "REAL",
	pgtype.Float8OID: "REAL", pgtype.NumericOID: "NUMERIC", pgtype.TextOID: "TEXT", pgtype.VarcharOID: "TEXT",
	pgtype.BPCharOID: "TEXT",
}

// cast translates ::type.
func (t *translator) cast(i int) (int, error) {
	name, n := typeAt(t.in, i+1)
	if n == 0 {
		return 0, unsupported("a cast to %s", t.at(i+1).text)
	}
	if t.prim < 0 || t.prim >= len(t.out) {
		return 0, failf(codeSyntax, `syntax error at or near "::"`)
	}
	oid := oidOf(name)
	if before := t.at(i - 1); before.kind == param {
		k, _ := strconv.Atoi(before.text) // It was read before.
		t.st.casts[k] = oid
	}
	if to := affinities[oid]; to != "" {
		expr := strings.Join(t.out[t.prim:], " ")
		t.out = append(t.out[:t.prim], "CAST ( "+expr+" AS "+to+" )")
	}
	used := 1 + n
	if t.at(i + used).is("(") { // The length of a varchar.
		for !t.at(i + used).is(")") {
			if i+used >= len(t.in) {
				return 0, failf(codeSyntax, "syntax error at end of input")
			}
			used++
		}
		used++
	}
	return used, nil
}

// functionOf is how the engine calls a function; nothing if there is none.
func functionOf(name string) string {
	to, ok := functions[name]
	if ok && to == "" {
		return name
	}
	return to
}

// table notes the table whose name begins at i, if one has to come, and returns how many tokens it has.
func (t *translator) table(i int) int {
	if t.next == "" {
		return 0
	}
	first, ok := t.at(i).name()
	if !ok || t.at(i).is("only", "if", "not", "exists", "lateral", "select", "table", "values") {
		return 0
	}
	right := t.next
	t.next = ""
	if !t.at(i + 1).is(".") {
		if slices.Contains(servers, first) {
			t.st.catalogs = append(t.st.catalogs, first)
			t.emit("temp." + quote(first))
			return 1
		}
		t.st.uses = append(t.st.uses, use{right, "", first})
		t.emit(quote(first))
		return 1
	}
	second, ok := t.at(i + 2).name()
	if !ok {
		return 0
	}
	switch first {
	case "pg_catalog":
		t.st.catalogs = append(t.st.catalogs, second)
		t.emit("temp." + quote(second))
	case "information_schema":
		t.st.catalogs = append(t.st.catalogs, "information_schema_"+second)
		t.emit("temp." + quote("information_schema_"+second) + "")
		if !t.at(i + 3).is("as") {
			t.out = append(t.out, "AS", quote(second))
		}
	default:
		t.st.uses = append(t.st.uses, use{right, first, second})
		t.emit(quote(inside(first)) + "." + quote(second))
	}
	return 3
}

// inside is how the engine calls a schema.
func inside(schema string) string {
	if schema == "public" {
		return "main"
	}
	return schema
}

func (t *translator) word(i int) (int, error) {
	tok := t.in[i]
	if n := t.table(i); n > 0 {
		return n, nil
	}
	if t.at(i + 1).is("(") {
		done, err := t.called(i)
		if err != nil {
			return 0, err
		}
		if done > 0 {
			return done, nil
		}
		tok = t.in[i]
	}
	switch tok.text {
	case "from", "join":
		t.out = append(t.out, tok.text)
		t.next = "SELECT"
		if t.at(i - 1).is("delete") {
			t.next = "DELETE"
		}
		if tok.text == "from" && !t.at(i-1).is("distinct") {
			t.from = append(t.from, len(t.opens))
		}
		return 1, nil
	case "into":
		t.next = "INSERT"
	case "update":
		if !t.at(i-1).is("on", "do", "for") {
			t.next = "UPDATE"
		}
	case "where", "group", "order", "limit", "having", "union", "returning", "set", "on":
		if len(t.from) > 0 && t.from[len(t.from)-1] == len(t.opens) && tok.text != "on" {
			t.from = t.from[:len(t.from)-1]
		}
	case "table", "view", "index":
		if t.st.verb != "select" && i < 3 {
			t.next = "OWNER"
		}
	case "references":
		t.next = "SELECT"
	case "ilike":
		t.out = append(t.out, "MATCH")
		return 1, nil
	case "current_user", "session_user":
		t.emit(literal(t.user))
		return 1, nil
	case "current_catalog":
		t.emit(literal(t.database))
		return 1, nil
	case "current_timestamp", "localtimestamp":
		t.emit("now()")
		return 1, nil
	case "current_date":
		t.emit("date(now())")
		return 1, nil
	case "public":
		if t.at(i + 1).is(".") {
			t.emit("main")
			return 1, nil
		}
	case "recursive", "lateral", "interval", "array", "any", "pg_sleep", "generate_series", "tablesample", "window":
		return 0, unsupported("%s", strings.ToUpper(tok.text))
	case "for":
		if t.st.rows && t.at(i+1).is("update", "share", "no", "key") {
			return len(t.in) - i, nil
		}
	case "default":
		return t.defaults(i)
	case "cascade", "restrict":
		if strings.HasPrefix(t.st.verb, "drop") {
			return 1, nil
		}
	}
	if t.st.verb == "create table" || t.st.verb == "alter table" {
		if name, n := typeAt(t.in, i); n > 0 && (t.at(i-1).kind == quoted || t.at(i-1).kind == word) &&
			!t.at(i-1).is("key", "constraint", "(", "column", "check") {
			for _, known := range typeOf {
				if known.name == name {
					t.emit(known.sql)
				}
			}
			return n, nil
		}
	}
	t.emit(tok.text)
	return 1, nil
}

// called checks that what stands before a parenthesis may. It returns how many tokens it has translated, if any.
func (t *translator) called(i int) (int, error) {
	name := t.in[i].text
	switch name {
	case "version":
		return t.constant(i, "PostgreSQL "+Version+" (Debian "+Version+"-1.pgdg13+1) on x86_64-pc-linux-gnu, 64-bit")
	case "current_database":
		return t.constant(i, t.database)
	case "current_schema":
		return t.constant(i, "public")
	case "pg_backend_pid":
		return t.constant(i, strconv.Itoa(int(t.pid)))
	}
	if to := functionOf(name); to != "" {
		t.in[i] = token{word, to}
		return 0, nil
	}
	if slices.Contains(beforeParen, name) || t.next != "" {
		return 0, nil
	}
	if before := t.at(i - 1); before.is("into", "table", "exists", "references", "on", "update", ".", "as", "with",
		"constraint", ",") && (t.st.verb != "select" || before.is("as", ".")) {
		return 0, nil
	}
	if _, n := typeAt(t.in, i); n > 0 && !t.st.rows {
		return 0, nil
	}
	return 0, failf(codeNoFunction, "function %s() does not exist", name)
}

// constant replaces a call without arguments by a value.
func (t *translator) constant(i int, value string) (int, error) {
	if !t.at(i + 2).is(")") {
		return 0, failf(codeNoFunction, "function %s takes no arguments", t.in[i].text)
	}
	t.emit(literal(value))
	if next := t.at(i + 3); t.at(i-1).is("select", ",") && (next.text == "" || next.is(",", "from")) {
		t.out = append(t.out, "AS", t.in[i].text)
	}
	return 3, nil
}

// defaults puts the expression after DEFAULT into parentheses, which the engine wants.
func (t *translator) defaults(i int) (int, error) {
	t.out = append(t.out, "DEFAULT")
	next := t.at(i + 1)
	if next.is("current_timestamp", "current_date", "current_user", "localtimestamp") {
		t.out = append(t.out, "(")
		_, err := t.token(i + 1)
		t.out = append(t.out, ")")
		return 2, err
	}
	if next.kind != word || !t.at(i+2).is("(") {
		return 1, nil
	}
	end := i + 3
	for depth := 1; depth > 0; end++ {
		switch {
		case end >= len(t.in):
			return 0, failf(codeSyntax, "syntax error at end of input")
		case t.at(end).is("("):
			depth++
		case t.at(end).is(")"):
			depth--
		}
	}
	t.out = append(t.out, "(")
	for k := i + 1; k < end; {
		n, err := t.token(k)
		if err != nil {
			return 0, err
		}
		k += n
	}
	t.out = append(t.out, ")")
	return end - i, nil
}
