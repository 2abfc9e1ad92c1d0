package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// reader reads the tokens of a definition.
type reader struct {
	list []token
	pos  int
}

func (r *reader) peek() token {
	if r.pos < len(r.list) {
		return r.list[r.pos]
	}
	return token{kind: symbol}
}

func (r *reader) done() bool {
	return r.pos >= len(r.list) || r.peek().symbol(";") && r.pos == len(r.list)-1
}

// take reads keywords that follow, if all of them are there.
func (r *reader) take(keywords ...string) bool {
	for i, k := range keywords {
		if r.pos+i >= len(r.list) || !r.list[r.pos+i].is(k) {
			return false
		}
	}
	r.pos += len(keywords)
	return true
}

func (r *reader) takeSymbol(s string) bool {
	if !r.peek().symbol(s) {
		return false
	}
	r.pos++
	return true
}

func (r *reader) name() (string, error) {
	t := r.peek()
	if !t.name() {
		return "", syntaxError("a name is missing", t.text)
	}
	r.pos++
	return t.text, nil
}

// table reads the name of a table.
func (r *reader) table(db string) (full string, err error) {
	short, err := r.name()
	if err != nil {
		return "", err
	}
	if r.takeSymbol(".") {
		db = short
		if short, err = r.name(); err != nil {
			return "", err
		}
	}
	return fullName(db, short)
}

// parenthesized reads all that is in parentheses, as tokens.
func (r *reader) parenthesized() ([]token, error) {
	if !r.takeSymbol("(") {
		return nil, syntaxError("a ( is missing", r.peek().text)
	}
	from, depth := r.pos, 1
	for ; r.pos < len(r.list); r.pos++ {
		switch t := r.list[r.pos]; {
		case t.symbol("("):
			depth++
		case t.symbol(")"):
			if depth--; depth == 0 {
				r.pos++
				return r.list[from : r.pos-1], nil
			}
		}
	}
	return nil, syntaxError("a ) is missing", "")
}

// names reads a list of columns in parentheses. Lengths and directions are left out.
func (r *reader) names() (list []string, err error) {
	in, err := r.parenthesized()
	if err != nil {
		return nil, err
	}
	inner := &reader{list: in}
	for !inner.done() {
		n, err := inner.name()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if inner.peek().symbol("(") {
			if _, err := inner.parenthesized(); err != nil {
				return nil, err
			}
		}
		_ = inner.take("ASC") || inner.take("DESC")
		if !inner.takeSymbol(",") && !inner.done() {
			return nil, syntaxError("a comma is missing", inner.peek().text)
		}
	}
	if len(list) == 0 {
		return nil, syntaxError("a column is missing", "()")
	}
	return list, nil
}

// definition is a table that is to be made.
type definition struct {
	full        string
	ifNotExists bool
	columns     []column
	constraints []string
	primary     []string
	indexes     []index
	first       int64 // the number that is given first; 0 if nothing is said
}

type column struct {
	name, declared, rest string
	auto, primary        bool
}

type index struct {
	name    string
	unique  bool
	columns []string
}

// createTable translates CREATE TABLE, after these words.
func createTable(db string, list []token) (statements []string, err error) {
	r := &reader{list: list}
	d := &definition{ifNotExists: r.take("IF", "NOT", "EXISTS")}
	if d.full, err = r.table(db); err != nil {
		return nil, err
	}
	if r.peek().is("LIKE", "SELECT", "AS") {
		return nil, unsupported("CREATE TABLE ... " + strings.ToUpper(r.peek().text))
	}
	in, err := r.parenthesized()
	if err != nil {
		return nil, err
	}
	for r.peek().is("PARTITION") {
		return nil, unsupported("PARTITION BY")
	}
	inner := &reader{list: in}
	for !inner.done() {
		if err := d.part(inner, db); err != nil {
			return nil, err
		}
		if !inner.takeSymbol(",") && !inner.done() {
			return nil, syntaxError("this cannot be read", inner.peek().text)
		}
	}
	if err := d.options(r); err != nil {
		return nil, err
	}
	return d.statements()
}

// options reads what is said of the table after its columns. Only the first number to give is heeded.
func (d *definition) options(r *reader) error {
	for !r.done() {
		if !r.take("AUTO_INCREMENT") {
			r.pos++
			continue
		}
		_ = r.takeSymbol("=")
		n, err := strconv.ParseInt(r.peek().text, 10, 64)
		if err != nil || n < 0 {
			return syntaxError("AUTO_INCREMENT wants a number", r.peek().text)
		}
		d.first = n
	}
	return nil
}

// part reads a column or a constraint.
func (d *definition) part(r *reader, db string) error {
	constraint := ""
	if r.take("CONSTRAINT") && !r.peek().is("PRIMARY", "UNIQUE", "FOREIGN", "CHECK") {
		var err error
		if constraint, err = r.name(); err != nil {
			return err
		}
	}
	switch {
	case r.take("PRIMARY", "KEY"):
		_ = r.take("USING", "BTREE")
		list, err := r.names()
		d.primary = list
		_ = r.take("CLUSTERED") || r.take("NONCLUSTERED")
		return err
	case r.take("FOREIGN", "KEY"):
		list, err := r.names()
		if err != nil {
			return err
		}
		ref, err := references(r, db)
		d.constraints = append(d.constraints, fmt.Sprintf("FOREIGN KEY (%s) %s", joined(list), ref))
		return err
	case r.take("CHECK"):
		in, err := r.parenthesized()
		if err != nil {
			return err
		}
		check, err := expression(in)
		d.constraints = append(d.constraints, "CHECK ("+check+")")
		return err
	case r.peek().is("UNIQUE") || r.peek().is("KEY", "INDEX"):
		i := index{unique: r.take("UNIQUE"), name: constraint}
		_ = r.take("KEY") || r.take("INDEX")
		if r.peek().name() {
			i.name, _ = r.name()
		}
		var err error
		i.columns, err = r.names()
		d.indexes = append(d.indexes, i)
		return err
	case r.peek().is("FULLTEXT", "SPATIAL"):
		return unsupported(strings.ToUpper(r.peek().text) + " indexes")
	}
	c, err := d.column(r, db)
	d.columns = append(d.columns, c)
	return err
}

// column reads a column with its type and what else is said of it.
func (d *definition) column(r *reader, db string) (c column, err error) {
	if c.name, err = r.name(); err != nil {
		return c, err
	}
	if c.declared, err = declared(r); err != nil {
		return c, err
	}
	var rest []string
	for !r.done() && !r.peek().symbol(",") {
		switch {
		case r.take("NOT", "NULL"):
			rest = append(rest, "NOT NULL")
		case r.take("NULL"), r.take("UNSIGNED"), r.take("SIGNED"), r.take("ZEROFILL"), r.take("CLUSTERED"),
			r.take("NONCLUSTERED"):
		case r.take("AUTO_INCREMENT"):
			c.auto = true
		case r.take("PRIMARY", "KEY"), r.take("PRIMARY"):
			c.primary = true
		case r.take("UNIQUE", "KEY"), r.take("UNIQUE"):
			d.indexes = append(d.indexes, index{name: c.name, unique: true, columns: []string{c.name}})
		case r.take("KEY"):
			c.primary = true
		case r.take("CHARACTER", "SET"), r.take("CHARSET"), r.take("COLLATE"), r.take("COMMENT"):
			r.pos++
		case r.take("DEFAULT"):
			v, err := defaultValue(r)
			if err != nil {
				return c, err
			}
			rest = append(rest, "DEFAULT "+v)
		case r.take("CHECK"):
			in, err := r.parenthesized()
			if err != nil {
				return c, err
			}
			check, err := expression(in)
			if err != nil {
				return c, err
			}
			rest = append(rest, "CHECK ("+check+")")
		case r.peek().is("REFERENCES"):
			ref, err := references(r, db)
			if err != nil {
				return c, err
			}
			rest = append(rest, ref)
		case r.take("ON", "UPDATE"):
			return c, unsupported("ON UPDATE CURRENT_TIMESTAMP")
		default:
			return c, syntaxError("this cannot be read", r.peek().text)
		}
	}
	c.rest = strings.Join(rest, " ")
	return c, nil
}

// types are those there are.
var types = "TINYINT SMALLINT MEDIUMINT INT INTEGER BIGINT DECIMAL NUMERIC FLOAT DOUBLE REAL BIT BOOL BOOLEAN " +
	"DATE DATETIME TIMESTAMP TIME YEAR CHAR VARCHAR BINARY VARBINARY TINYBLOB BLOB MEDIUMBLOB LONGBLOB TINYTEXT " +
	"TEXT MEDIUMTEXT LONGTEXT ENUM SET JSON"

// declared reads a type.
func declared(r *reader) (string, error) {
	t := r.peek()
	upper := strings.ToUpper(t.text)
	if t.kind != word || !strings.Contains(" "+types+" ", " "+upper+" ") {
		return "", syntaxError("an unknown type", t.text)
	}
	r.pos++
	if !r.peek().symbol("(") {
		return upper, nil
	}
	in, err := r.parenthesized()
	if err != nil {
		return "", err
	}
	if upper == "ENUM" || upper == "SET" {
		return "VARCHAR(255)", nil
	}
	var numbers []string
	for _, t := range in {
		if t.kind == number {
			numbers = append(numbers, t.text)
		} else if !t.symbol(",") {
			return "", syntaxError("a number is missing", t.text)
		}
	}
	return upper + "(" + strings.Join(numbers, ",") + ")", nil
}

// defaultValue reads a value that no clock and no luck decides.
func defaultValue(r *reader) (string, error) {
	t := r.peek()
	switch {
	case t.kind == text:
		r.pos++
		return literal(t.text), nil
	case t.kind == number, t.is("NULL", "TRUE", "FALSE"):
		r.pos++
		return t.text, nil
	case (t.symbol("-") || t.symbol("+")) && r.pos+1 < len(r.list) && r.list[r.pos+1].kind == number:
		r.pos += 2
		return t.text + r.list[r.pos-1].text, nil
	}
	return "", unsupported("DEFAULT " + t.text + ": give the value in the statement that writes")
}

// references reads what a foreign key refers to.
func references(r *reader, db string) (string, error) {
	if !r.take("REFERENCES") {
		return "", syntaxError("REFERENCES is missing", r.peek().text)
	}
	full, err := r.table(db)
	if err != nil {
		return "", err
	}
	list, err := r.names()
	if err != nil {
		return "", err
	}
	ref := fmt.Sprintf("REFERENCES %s (%s)", name(full), joined(list))
	for r.peek().is("ON") {
		r.pos++
		event := strings.ToUpper(r.peek().text)
		r.pos++
		action := strings.ToUpper(r.peek().text)
		r.pos++
		if action == "SET" || action == "NO" {
			action += " " + strings.ToUpper(r.peek().text)
			r.pos++
		}
		switch action {
		case "CASCADE", "RESTRICT", "SET NULL", "NO ACTION":
		default:
			return "", syntaxError("this cannot be read", action)
		}
		if event != "DELETE" && event != "UPDATE" {
			return "", syntaxError("this cannot be read", event)
		}
		ref += " ON " + event + " " + action
	}
	return ref, nil
}

// nowhere is where an expression of a definition is: there are no databases, no values of the moment.
type nowhere struct{}

func (nowhere) database() string           { return "" }
func (nowhere) value(string) (any, bool)   { return nil, false }
func (nowhere) setting(string) (any, bool) { return nil, false }

// expression translates the condition of a check.
func expression(list []token) (string, error) {
	for _, t := range list {
		if t.is("SELECT") || t.kind == mark {
			return "", syntaxError("this cannot be in a definition", t.text)
		}
	}
	x := &translator{around: nowhere{}, list: list, tables: []bool{false}, writes: true}
	for x.pos < len(x.list) {
		if err := x.step(); err != nil {
			return "", err
		}
	}
	return strings.Join(x.out, " "), nil
}

func joined(columns []string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = name(c)
	}
	return strings.Join(list, ", ")
}

// statements make the table.
func (d *definition) statements() ([]string, error) {
	if len(d.columns) == 0 {
		return nil, mysql.NewDefaultError(mysql.ER_TABLE_MUST_HAVE_COLUMNS)
	}
	for _, c := range d.columns {
		if c.primary {
			if len(d.primary) > 0 {
				return nil, mysql.NewDefaultError(mysql.ER_MULTIPLE_PRI_KEY)
			}
			d.primary = []string{c.name}
		}
	}
	var parts []string
	counted := false
	for _, c := range d.columns {
		key := len(d.primary) == 1 && strings.EqualFold(d.primary[0], c.name)
		switch {
		case c.auto && !key:
			return nil, unsupported("AUTO_INCREMENT on a column that is not the primary key")
		case c.auto:
			counted = true
			parts = append(parts, name(c.name)+" INTEGER PRIMARY KEY AUTOINCREMENT")
		default:
			part := strings.TrimSpace(name(c.name) + " " + c.declared + " " + c.rest)
			if key && !strings.Contains(c.rest, "NOT NULL") {
				part += " NOT NULL"
			}
			parts = append(parts, part)
		}
	}
	if len(d.primary) > 0 && !counted {
		parts = append(parts, "PRIMARY KEY ("+joined(d.primary)+")")
	}
	parts = append(parts, d.constraints...)
	maybe := ""
	if d.ifNotExists {
		maybe = "IF NOT EXISTS "
	}
	list := []string{fmt.Sprintf("CREATE TABLE %s%s (%s)", maybe, name(d.full), strings.Join(parts, ", "))}
	if counted && d.first > 1 { // A table that is there already goes on counting.
		list = append(list, fmt.Sprintf("INSERT INTO sqlite_sequence (name, seq) SELECT '%s', %d WHERE NOT EXISTS "+
			"(SELECT 1 FROM sqlite_sequence WHERE name = '%[1]s')", strings.ReplaceAll(d.full, "'", "''"), d.first-1))
	}
	for _, i := range d.indexes {
		list = append(list, createIndex(d.full, i, d.ifNotExists))
	}
	return list, nil
}

// createIndex makes an index. Its name is that of the table and its own.
func createIndex(table string, i index, ifNotExists bool) string {
	unique, maybe := "", ""
	if i.unique {
		unique = "UNIQUE "
	}
	if ifNotExists {
		maybe = "IF NOT EXISTS "
	}
	if i.name == "" {
		i.name = i.columns[0]
	}
	return fmt.Sprintf("CREATE %sINDEX %s%s ON %s (%s)", unique, maybe, name(table+"."+i.name), name(table),
		joined(i.columns))
}

// alterTable translates ALTER TABLE, after these words: one column or index more or less, or another name.
func alterTable(db string, list []token) ([]string, error) {
	r := &reader{list: list}
	full, err := r.table(db)
	if err != nil {
		return nil, err
	}
	d := &definition{full: full}
	switch {
	case r.take("ADD", "UNIQUE"), r.take("ADD", "INDEX"), r.take("ADD", "KEY"), r.take("ADD", "PRIMARY"):
		if r.list[r.pos-1].is("PRIMARY") {
			return nil, unsupported("ALTER TABLE ... ADD PRIMARY KEY")
		}
		r.pos--
		if err := d.part(r, db); err != nil {
			return nil, err
		}
		return []string{createIndex(full, d.indexes[0], false)}, nil
	case r.take("ADD", "COLUMN"), r.take("ADD"):
		c, err := d.column(r, db)
		if err != nil {
			return nil, err
		}
		if c.auto || c.primary || len(d.indexes) > 0 {
			return nil, unsupported("ALTER TABLE ... ADD COLUMN with a key")
		}
		add := fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s %s", name(full), name(c.name), c.declared, c.rest)
		return []string{add}, nil
	case r.take("DROP", "INDEX"), r.take("DROP", "KEY"):
		i, err := r.name()
		return []string{"DROP INDEX " + name(full+"."+i)}, err
	case r.take("DROP", "COLUMN"), r.take("DROP"):
		c, err := r.name()
		return []string{fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", name(full), name(c))}, err
	case r.take("RENAME", "COLUMN"):
		from, err := r.name()
		if err != nil || !r.take("TO") {
			return nil, syntaxError("TO is missing", r.peek().text)
		}
		to, err := r.name()
		return []string{fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", name(full), name(from), name(to))}, err
	case r.take("RENAME", "TO"), r.take("RENAME"):
		to, err := r.table(db)
		return []string{fmt.Sprintf("ALTER TABLE %s RENAME TO %s", name(full), name(to))}, err
	}
	return nil, unsupported("ALTER TABLE ... " + strings.ToUpper(r.peek().text))
}
