package sql

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

// read asks the stores.
func (s *Server) read(ctx context.Context, sql string, args ...any) ([][]any, error) {
	st := kv.Statement{SQL: sql}
	for _, a := range args {
		st.Args = append(st.Args, kv.Value{V: a})
	}
	r, err := s.data.Read(ctx, st)
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for _, row := range r.Rows {
		values := make([]any, len(row))
		for i, v := range row {
			values[i] = v.V
		}
		rows = append(rows, values)
	}
	return rows, nil
}

func (s *Server) hasDatabase(ctx context.Context, db string) (bool, error) {
	if lower := strings.ToLower(db); lower == "information_schema" || lower == "mysql" {
		return true, nil
	}
	rows, err := s.read(ctx, `SELECT 1 FROM "#databases" WHERE name = ?`, db)
	return len(rows) > 0, err
}

func (s *Server) hasUser(ctx context.Context, user string) (bool, error) {
	rows, err := s.read(ctx, `SELECT 1 FROM "#users" WHERE user = ?`, user)
	return len(rows) > 0, err
}

// tables are those of a database.
func (s *Server) tables(ctx context.Context, db string) (names []string, err error) {
	rows, err := s.read(ctx, `SELECT substr(name, ?) FROM sqlite_master WHERE type IN ('table', 'view') AND `+
		`substr(name, 1, ?) = ? ORDER BY name`, int64(len([]rune(db))+2), int64(len([]rune(db))+1), db+".")
	for _, r := range rows {
		names = append(names, fmt.Sprint(r[0]))
	}
	return names, err
}

// like is what follows LIKE, as a regular expression.
func like(r *reader) (*regexp.Regexp, error) {
	if !r.take("LIKE") {
		if !r.done() {
			return nil, unsupported("SHOW ... " + list(r.list[r.pos:]))
		}
		return regexp.MustCompile(""), nil
	}
	p := regexp.QuoteMeta(r.peek().text)
	p = strings.NewReplacer(`\\%`, "%", `\\_`, "_", "%", ".*", "_", ".").Replace(p)
	re, err := regexp.Compile("(?is)^" + p + "$")
	if err != nil {
		return nil, syntaxError("this pattern cannot be read", r.peek().text)
	}
	return re, nil
}

// show answers SHOW.
func (s *session) show(r *reader) (*table, error) {
	_ = r.take("GLOBAL") || r.take("SESSION")
	full := r.take("FULL")
	switch {
	case r.take("DATABASES"), r.take("SCHEMAS"):
		rows, err := s.srv.read(s.ctx, `SELECT name FROM "#databases" UNION SELECT 'mysql' UNION SELECT `+
			`'information_schema' ORDER BY 1`)
		if err != nil {
			return nil, err
		}
		return filtered(r, table{[]string{"Database"}, rows})
	case r.take("TABLES"):
		return s.showTables(r, full)
	case r.take("CREATE", "TABLE"):
		return s.showCreate(r)
	case r.take("CREATE", "DATABASE"):
		db, err := r.name()
		if err != nil {
			return nil, err
		}
		return &table{[]string{"Database", "Create Database"}, [][]any{{db, fmt.Sprintf(
			"CREATE DATABASE `%s` /*!40100 DEFAULT CHARACTER SET utf8mb4 */", db)}}}, nil
	case r.take("COLUMNS"), r.take("FIELDS"):
		if !r.take("FROM") && !r.take("IN") {
			return nil, syntaxError("FROM is missing", r.peek().text)
		}
		return s.describe(r)
	case r.take("INDEX"), r.take("INDEXES"), r.take("KEYS"):
		return s.showIndexes(r)
	case r.take("VARIABLES"):
		return filtered(r, s.settings(s.srv.variables()))
	case r.take("STATUS"):
		return filtered(r, s.settings(s.srv.statusVariables()))
	case r.take("PROCESSLIST"):
		return s.srv.processes(full), nil
	case r.take("WARNINGS"), r.take("ERRORS"):
		return &table{columns: []string{"Level", "Code", "Message"}}, nil
	case r.take("ENGINES"):
		return &table{
			[]string{"Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"},
			[][]any{{"InnoDB", "DEFAULT", "Supports transactions", "YES", "NO", "NO"}},
		}, nil
	case r.take("GRANTS"):
		return &table{
			[]string{"Grants for " + s.user + "@%"},
			[][]any{{"GRANT ALL PRIVILEGES ON *.* TO '" + s.user + "'@'%'"}},
		}, nil
	}
	return nil, unsupported("SHOW " + list(r.list[r.pos:]))
}

// filtered leaves the rows whose first column is like what is asked for.
func filtered(r *reader, t table) (*table, error) {
	re, err := like(r)
	if err != nil {
		return nil, err
	}
	t.rows = slices.DeleteFunc(t.rows, func(row []any) bool { return !re.MatchString(fmt.Sprint(row[0])) })
	return &t, nil
}

func (s *session) settings(of map[string]string) table {
	t := table{columns: []string{"Variable_name", "Value"}}
	for _, k := range slices.Sorted(maps.Keys(of)) {
		v := of[k]
		if mine, ok := s.vars[k]; ok {
			v = mine
		}
		t.rows = append(t.rows, []any{k, v})
	}
	return t
}

func (s *session) showTables(r *reader, full bool) (*table, error) {
	db := s.database()
	if r.take("FROM") || r.take("IN") {
		var err error
		if db, err = r.name(); err != nil {
			return nil, err
		}
		if known, err := s.srv.hasDatabase(s.ctx, db); err != nil || !known {
			return nil, orUnknown(err, db)
		}
	}
	if db == "" {
		return nil, mysql.NewDefaultError(mysql.ER_NO_DB_ERROR)
	}
	names, err := s.srv.tables(s.ctx, db)
	if err != nil {
		return nil, err
	}
	t := table{columns: []string{"Tables_in_" + db}}
	if full {
		t.columns = append(t.columns, "Table_type")
	}
	for _, n := range names {
		row := []any{n}
		if full {
			row = append(row, "BASE TABLE")
		}
		t.rows = append(t.rows, row)
	}
	return filtered(r, t)
}

// field is a column as the catalog has it.
type field struct {
	name, kind, key, extra string
	null                   bool
	value                  any // the default
	place                  int64
}

// fields reads the columns of a table.
func (s *session) fields(full string) (list []field, err error) {
	rows, err := s.srv.read(s.ctx, `SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)`, full)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		db, t := split(full)
		return nil, mysql.NewDefaultError(mysql.ER_NO_SUCH_TABLE, db, t)
	}
	sql, err := s.srv.read(s.ctx, `SELECT sql FROM sqlite_master WHERE name = ?`, full)
	if err != nil {
		return nil, err
	}
	auto := len(sql) > 0 && strings.Contains(fmt.Sprint(sql[0][0]), "AUTOINCREMENT")
	for _, r := range rows {
		f := field{name: fmt.Sprint(r[0]), kind: strings.ToLower(fmt.Sprint(r[1])), null: r[2] == int64(0), value: r[3]}
		if f.place, _ = r[4].(int64); f.place > 0 {
			f.key, f.null = "PRI", false
			if auto {
				f.kind, f.extra = "bigint(20)", "auto_increment"
			}
		}
		if v, ok := f.value.(string); ok {
			f.value = strings.Trim(v, "'")
		}
		list = append(list, f)
	}
	return list, nil
}

// describe shows the columns of a table.
func (s *session) describe(r *reader) (*table, error) {
	full, err := r.table(s.database())
	if err != nil {
		return nil, err
	}
	if r.take("FROM") || r.take("IN") {
		db, err := r.name()
		if err != nil {
			return nil, err
		}
		_, t := split(full)
		if full, err = fullName(db, t); err != nil {
			return nil, err
		}
	}
	fields, err := s.fields(full)
	if err != nil {
		return nil, err
	}
	t := table{columns: []string{"Field", "Type", "Null", "Key", "Default", "Extra"}}
	for _, f := range fields {
		null := "NO"
		if f.null {
			null = "YES"
		}
		t.rows = append(t.rows, []any{f.name, f.kind, null, f.key, f.value, f.extra})
	}
	return &t, nil
}

// indexes are those of a table, each with its columns.
func (s *session) indexes(full string) (list []index, err error) {
	rows, err := s.srv.read(s.ctx,
		`SELECT name, "unique" FROM pragma_index_list(?) WHERE origin = 'c' ORDER BY name`, full)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		n := fmt.Sprint(r[0])
		columns, err := s.srv.read(s.ctx, `SELECT name FROM pragma_index_info(?)`, n)
		if err != nil {
			return nil, err
		}
		i := index{name: last(n), unique: r[1] == int64(1)}
		for _, c := range columns {
			i.columns = append(i.columns, fmt.Sprint(c[0]))
		}
		list = append(list, i)
	}
	return list, nil
}

func (s *session) showIndexes(r *reader) (*table, error) {
	if !r.take("FROM") && !r.take("IN") {
		return nil, syntaxError("FROM is missing", r.peek().text)
	}
	full, err := r.table(s.database())
	if err != nil {
		return nil, err
	}
	fields, err := s.fields(full)
	if err != nil {
		return nil, err
	}
	indexes, err := s.indexes(full)
	if err != nil {
		return nil, err
	}
	_, short := split(full)
	t := table{columns: []string{"Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name"}}
	for _, f := range fields {
		if f.place > 0 {
			t.rows = append(t.rows, []any{short, int64(0), "PRIMARY", f.place, f.name})
		}
	}
	for _, i := range indexes {
		several := int64(1)
		if i.unique {
			several = 0
		}
		for n, c := range i.columns {
			t.rows = append(t.rows, []any{short, several, i.name, int64(n + 1), c})
		}
	}
	return &t, nil
}

// showCreate writes the statement that would make a table.
func (s *session) showCreate(r *reader) (*table, error) {
	full, err := r.table(s.database())
	if err != nil {
		return nil, err
	}
	fields, err := s.fields(full)
	if err != nil {
		return nil, err
	}
	indexes, err := s.indexes(full)
	if err != nil {
		return nil, err
	}
	var lines []string
	primary := make([]string, len(fields)+1)
	for _, f := range fields {
		line := fmt.Sprintf("  `%s` %s", f.name, f.kind)
		if !f.null {
			line += " NOT NULL"
		}
		switch {
		case f.extra != "":
			line += " AUTO_INCREMENT"
		case f.value != nil:
			line += fmt.Sprintf(" DEFAULT '%v'", f.value)
		case f.null:
			line += " DEFAULT NULL"
		}
		if f.place > 0 {
			primary[f.place] = "`" + f.name + "`"
		}
		lines = append(lines, line)
	}
	primary = slices.DeleteFunc(primary, func(s string) bool { return s == "" })
	if len(primary) > 0 {
		lines = append(lines, "  PRIMARY KEY ("+strings.Join(primary, ",")+")")
	}
	for _, i := range indexes {
		kind := "KEY"
		if i.unique {
			kind = "UNIQUE KEY"
		}
		lines = append(lines, fmt.Sprintf("  %s `%s` (`%s`)", kind, i.name, strings.Join(i.columns, "`,`")))
	}
	_, short := split(full)
	return &table{[]string{"Table", "Create Table"}, [][]any{{short, fmt.Sprintf("CREATE TABLE `%s` (\n%s\n) "+
		"ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin", short, strings.Join(lines, ",\n"))}}}, nil
}
