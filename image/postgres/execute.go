package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// prepared is a statement that waits for its parameters.
type prepared struct {
	query   string
	st      *statement // nil is an empty one
	oids    []uint32
	columns []column
}

// portal is a statement with its parameters, and what it has given but was not sent.
type portal struct {
	p       *prepared
	args    []any
	formats []int16
	rows    [][]any
	columns []column
	tag     string
	done    bool
}

// read translates a statement.
func (n *session) read(tokens []token) (*statement, error) {
	if len(tokens) == 5 && tokens[0].is("select") && tokens[1].is("pg_sleep") && tokens[3].kind == number {
		return &statement{tokens: tokens, verb: "sleep", rows: true}, nil
	}
	return translate(tokens, n.facts)
}

// simple runs a query of one or more statements.
func (n *session) simple(ctx context.Context, query string) {
	n.become("active", query, nil)
	statements, err := n.split(query)
	if err != nil {
		n.report(explain(ctx, err))
		return
	}
	if len(statements) == 0 {
		n.be.Send(&pgproto3.EmptyQueryResponse{})
		return
	}
	together := len(statements) > 1 && n.tx == 'I'
	if together {
		n.tx = 'T'
	}
	for _, st := range statements {
		r, tag, err := n.execute(ctx, st, nil)
		if err != nil {
			n.report(explain(ctx, err))
			if together {
				_ = n.finish(ctx, false)
			}
			return
		}
		if st.rows {
			n.sendColumns(r.columns, nil)
			if err := n.sendRows(r.columns, nil, r.rows); err != nil {
				n.report(explain(ctx, err))
				return
			}
		}
		n.be.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
		together = together && n.tx == 'T'
	}
	if together {
		if err := n.finish(ctx, true); err != nil {
			n.report(explain(ctx, err))
		}
	}
}

func (n *session) split(query string) (list []*statement, err error) {
	if len(query) > maxSQL {
		return nil, failf(codeTooLarge, "the query has more than %d bytes", maxSQL)
	}
	all, err := lex(query)
	if err != nil {
		return nil, err
	}
	for _, tokens := range all {
		st, err := n.read(tokens)
		if err != nil {
			return nil, err
		}
		list = append(list, st)
	}
	return list, nil
}

// within runs f with a context that the session can be cancelled by, in its turn.
func (n *session) within(ctx context.Context, keep bool, f func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	n.become("active", "", stop)
	if !n.owner {
		if err := n.engine.take(ctx); err != nil {
			return explain(ctx, err)
		}
		if keep {
			if _, err := n.engine.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
				n.engine.give()
				return explain(ctx, err)
			}
			n.owner = true
		} else {
			defer n.engine.give()
		}
	}
	if err := f(ctx); err != nil {
		return explain(ctx, err)
	}
	return nil
}

// finish ends a transaction.
func (n *session) finish(ctx context.Context, commit bool) error {
	failed := n.tx == 'E'
	n.tx = 'I'
	verb := "COMMIT"
	if !commit || failed {
		verb = "ROLLBACK"
		n.engine.rollbacks.Add(1)
	} else {
		n.engine.commits.Add(1)
	}
	if !n.owner {
		return nil
	}
	defer func() {
		n.owner = false
		n.engine.give()
	}()
	_, err := n.engine.conn.ExecContext(ctx, verb)
	if err != nil && verb == "COMMIT" {
		_, _ = n.engine.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return explain(ctx, err)
	}
	return n.engine.state(ctx)
}

// execute does a statement and returns its result and tag.
func (n *session) execute(ctx context.Context, st *statement, args []any) (*result, string, error) {
	if n.tx == 'E' && st.verb != "rollback" && st.verb != "abort" && st.verb != "commit" && st.verb != "end" {
		return nil, "", errAborted()
	}
	if st.sql == "" {
		return n.own(ctx, st)
	}
	if len(args) < st.params {
		return nil, "", failf("42P02", "there is no parameter $%d", len(args)+1)
	}
	var r *result
	inTx := n.tx == 'T'
	err := n.within(ctx, inTx && st.writes, func(ctx context.Context) error {
		if err := n.allowed(ctx, st); err != nil {
			return err
		}
		if err := n.fillCatalogs(ctx, st.catalogs); err != nil {
			return err
		}
		var err error
		if r, err = n.engine.run(ctx, st.sql, st.rows, args); err != nil {
			return err
		}
		if st.writes && !inTx {
			return n.engine.state(ctx)
		}
		return nil
	})
	if err != nil {
		if !inTx {
			n.engine.rollbacks.Add(1)
		}
		return nil, "", err
	}
	if !inTx {
		n.engine.commits.Add(1)
	}
	r.columns = n.named(st, r.columns)
	return r, n.tagOf(st, r), nil
}

func (n *session) tagOf(st *statement, r *result) string {
	count := r.n
	if st.rows {
		count = int64(len(r.rows))
		n.engine.returned.Add(count)
	} else {
		n.engine.written.Add(count)
	}
	switch st.tag {
	case "SELECT", "UPDATE", "DELETE":
		return fmt.Sprintf("%s %d", st.tag, count)
	case "INSERT":
		return fmt.Sprintf("INSERT 0 %d", count)
	}
	return st.tag
}

// allowed checks the rights of the user.
func (n *session) allowed(ctx context.Context, st *statement) error {
	for _, u := range st.uses {
		schema := n.engine.find(ctx, u)
		if schema == "" {
			if u.right != "OWNER" {
				continue // The engine says that it is not there, or it is a name that the statement gives.
			}
			if schema = inside(u.schema); schema == "" {
				schema = "main"
			}
		}
		if err := n.roles.may(n.user, u.right, schema, u.table); err != nil {
			return err
		}
	}
	return nil
}

var (
	expression = regexp.MustCompile(`^([a-z_]+) ?\(.*\)$`)
	plain      = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)
)

// named gives columns the names that PostgreSQL would.
func (n *session) named(st *statement, columns []column) []column {
	for i, c := range columns {
		given := plain.MatchString(c.name) // A column of a table.
		for _, t := range st.tokens {
			if name, ok := t.name(); ok && name == c.name {
				given = true
			}
		}
		if given {
			continue
		}
		if m := expression.FindStringSubmatch(c.name); m != nil {
			columns[i].name = m[1]
			if m[1] == "group_concat" {
				columns[i].name = "string_agg"
			}
		} else {
			columns[i].name = "?column?"
		}
	}
	return columns
}

// extended answers a message of the extended protocol.
func (n *session) extended(ctx context.Context, m pgproto3.FrontendMessage) error {
	switch q := m.(type) {
	case *pgproto3.Parse:
		p, err := n.prepare(ctx, q.Query, q.ParameterOIDs)
		if err != nil {
			return err
		}
		if len(n.statements) >= maxStatements {
			return failf(codeTooLarge, "there are %d prepared statements already", maxStatements)
		}
		n.statements[q.Name] = p
		n.be.Send(&pgproto3.ParseComplete{})
	case *pgproto3.Bind:
		return n.bind(q)
	case *pgproto3.Describe:
		return n.describe(q)
	case *pgproto3.Execute:
		return n.executePortal(ctx, q)
	case *pgproto3.Close:
		if q.ObjectType == 'S' {
			delete(n.statements, q.Name)
		} else {
			delete(n.portals, q.Name)
		}
		n.be.Send(&pgproto3.CloseComplete{})
	default:
		return unsupported("this message of the protocol")
	}
	return nil
}

// prepare reads a statement and finds out what it takes and gives.
func (n *session) prepare(ctx context.Context, query string, given []uint32) (*prepared, error) {
	n.become("active", query, nil)
	list, err := n.split(query)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, failf(codeSyntax, "cannot insert multiple commands into a prepared statement")
	}
	p := &prepared{query: query}
	if len(list) == 0 {
		return p, nil
	}
	p.st = list[0]
	p.oids = make([]uint32, max(p.st.params, min(len(given), maxParams)))
	copy(p.oids, given)
	if p.st.sql == "" {
		p.columns = ownColumns(p.st)
		return p, nil
	}
	if n.tx == 'E' {
		return nil, errAborted()
	}
	return p, n.within(ctx, false, func(ctx context.Context) error { return n.look(ctx, p) })
}

// look asks the engine for columns, and guesses the types of parameters.
func (n *session) look(ctx context.Context, p *prepared) error {
	known := map[string]uint32{}
	var first []column // of the table that is written
	for _, u := range p.st.uses {
		schema := n.engine.find(ctx, u)
		if schema == "" {
			continue
		}
		columns, err := n.engine.describe(ctx, schema, u.table)
		if err != nil {
			return err
		}
		for _, c := range columns {
			known[c.name] = oidOf(c.declared)
			if u == p.st.uses[0] {
				first = append(first, column{c.name, known[c.name]})
			}
		}
	}
	for i, oid := range p.st.infer(known) {
		if i < len(p.oids) && p.oids[i] == 0 {
			p.oids[i] = oid
		}
	}
	if err := n.fillCatalogs(ctx, p.st.catalogs); err != nil {
		return err
	}
	nothing := make([]any, p.st.params)
	for i, t := range p.st.tokens {
		if t.kind == param && p.st.tokens[max(i-1, 0)].is("limit", "offset") {
			k, _ := strconv.Atoi(t.text) // It was read before.
			nothing[k-1] = 1
		}
	}
	if !p.st.rows || p.st.writes {
		if _, err := n.engine.run(ctx, "EXPLAIN "+p.st.sql, true, nothing); err != nil {
			return err
		}
		if p.st.rows {
			p.columns = returning(p.st, known, first)
		}
		return nil
	}
	r, err := n.engine.run(ctx, "SELECT * FROM ( "+p.st.sql+" ) LIMIT 1", true, nothing)
	if err != nil {
		return err
	}
	p.columns = n.named(p.st, r.columns)
	for i, c := range p.columns {
		if c.oid == 0 {
			p.columns[i].oid = map[string]uint32{
				"count": pgtype.Int8OID, "sum": pgtype.NumericOID, "avg": pgtype.NumericOID,
			}[c.name]
		}
		if p.columns[i].oid == 0 {
			p.columns[i].oid = pgtype.TextOID
		}
	}
	return nil
}

// returning are the columns of a statement that writes and gives rows.
func returning(st *statement, known map[string]uint32, all []column) (list []column) {
	at := len(st.tokens)
	for i, t := range st.tokens {
		if t.is("returning") {
			at = i + 1
		}
	}
	for i := at; i < len(st.tokens); i++ {
		t := st.tokens[i]
		if t.is("*") {
			list = append(list, all...)
		}
		if name, ok := t.name(); ok && (i+1 >= len(st.tokens) || st.tokens[i+1].is(",")) {
			oid := known[name]
			if oid == 0 {
				oid = pgtype.TextOID
			}
			list = append(list, column{name, oid})
		}
	}
	return list
}

func (n *session) bind(q *pgproto3.Bind) error {
	p := n.statements[q.PreparedStatement]
	if p == nil {
		return failf(codeNoStatement, "prepared statement %q does not exist", q.PreparedStatement)
	}
	if len(n.portals) >= maxStatements {
		return failf(codeTooLarge, "there are %d portals already", maxStatements)
	}
	if len(q.Parameters) != len(p.oids) {
		return failf(codeProtocol, "bind message supplies %d parameters, but the prepared statement requires %d",
			len(q.Parameters), len(p.oids))
	}
	out := &portal{p: p, formats: append([]int16(nil), q.ResultFormatCodes...), columns: p.columns}
	for i, data := range q.Parameters {
		format := int16(0)
		switch len(q.ParameterFormatCodes) {
		case 0:
		case 1:
			format = q.ParameterFormatCodes[0]
		default:
			if i >= len(q.ParameterFormatCodes) {
				return failf(codeProtocol, "bind message has too few parameter formats")
			}
			format = q.ParameterFormatCodes[i]
		}
		v, err := decode(n.types, p.oids[i], format, data)
		if err != nil {
			return err
		}
		out.args = append(out.args, v)
	}
	n.portals[q.DestinationPortal] = out
	n.be.Send(&pgproto3.BindComplete{})
	return nil
}

func (n *session) describe(q *pgproto3.Describe) error {
	if q.ObjectType == 'P' {
		p := n.portals[q.Name]
		if p == nil {
			return failf(codeNoPortal, "portal %q does not exist", q.Name)
		}
		if p.p.st == nil || !p.p.st.rows {
			n.be.Send(&pgproto3.NoData{})
			return nil
		}
		n.sendColumns(p.columns, p.formats)
		return nil
	}
	p := n.statements[q.Name]
	if p == nil {
		return failf(codeNoStatement, "prepared statement %q does not exist", q.Name)
	}
	n.be.Send(&pgproto3.ParameterDescription{ParameterOIDs: p.oids})
	if p.st == nil || !p.st.rows {
		n.be.Send(&pgproto3.NoData{})
		return nil
	}
	n.sendColumns(p.columns, nil)
	return nil
}

func (n *session) executePortal(ctx context.Context, q *pgproto3.Execute) error {
	p := n.portals[q.Portal]
	switch {
	case p == nil:
		return failf(codeNoPortal, "portal %q does not exist", q.Portal)
	case p.p.st == nil:
		n.be.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	if !p.done {
		n.become("active", p.p.query, nil)
		r, tag, err := n.execute(ctx, p.p.st, p.args)
		if err != nil {
			return err
		}
		p.rows, p.tag, p.done = r.rows, tag, true
		if len(p.columns) != len(r.columns) {
			p.columns = r.columns
		}
	}
	send := p.rows
	if q.MaxRows > 0 && int(q.MaxRows) < len(send) {
		send = send[:q.MaxRows]
	}
	p.rows = p.rows[len(send):]
	if p.p.st.rows {
		if err := n.sendRows(p.columns, p.formats, send); err != nil {
			return err
		}
	}
	if len(p.rows) > 0 {
		n.be.Send(&pgproto3.PortalSuspended{})
		return nil
	}
	n.be.Send(&pgproto3.CommandComplete{CommandTag: []byte(p.tag)})
	return nil
}

func formatOf(formats []int16, i int) int16 {
	switch {
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return 0
}

func (n *session) sendColumns(columns []column, formats []int16) {
	m := &pgproto3.RowDescription{}
	for i, c := range columns {
		oid := c.oid
		if oid == 0 {
			oid = pgtype.TextOID
		}
		m.Fields = append(m.Fields, pgproto3.FieldDescription{
			Name: []byte(c.name), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1, Format: formatOf(formats, i),
		})
	}
	n.be.Send(m)
}

// flushEvery is how many bytes of rows are sent at a time.
const flushEvery = 256 << 10

func (n *session) sendRows(columns []column, formats []int16, rows [][]any) error {
	size := 0
	for _, row := range rows {
		m := &pgproto3.DataRow{Values: make([][]byte, len(row))}
		for i, v := range row {
			var oid uint32
			if i < len(columns) {
				oid = columns[i].oid
			}
			if formatOf(formats, i) == pgtype.BinaryFormatCode {
				b, err := asBinary(n.types, oid, v)
				if err != nil {
					return err
				}
				m.Values[i] = b
			} else {
				m.Values[i] = asText(oid, v)
			}
			size += len(m.Values[i]) + 8
		}
		n.be.Send(m)
		if size > flushEvery {
			size = 0
			if err := n.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// infer guesses the types of parameters by what is beside them.
func (st *statement) infer(known map[string]uint32) []uint32 {
	oids := make([]uint32, st.params)
	columns := st.inserted()
	var last uint32 // of the column that was compared last
	tuple, depth := -1, 0
	for i, t := range st.tokens {
		switch {
		case t.is("values"):
			tuple = 0
		case t.is("(") && tuple >= 0:
			if depth++; depth == 1 {
				tuple = 0
			}
		case t.is(")") && tuple >= 0:
			depth--
		case t.is(",") && depth == 1:
			tuple++
		case t.is("on", "returning", "where"):
			tuple = -1
		}
		if name, ok := t.name(); ok && known[name] != 0 {
			last = known[name]
		}
		if t.kind != param {
			continue
		}
		k, err := strconv.Atoi(t.text)
		if err != nil || k < 1 || k > len(oids) {
			continue // What the session does itself takes no parameters.
		}
		before := token{kind: sign}
		if i > 0 {
			before = st.tokens[i-1]
		}
		oid := st.casts[k]
		switch {
		case oid != 0:
		case before.is("limit", "offset"):
			oid = pgtype.Int8OID
		case tuple >= 0 && depth >= 1 && tuple < len(columns):
			oid = known[columns[tuple]]
		case before.is("=", "<", ">", "<=", ">=", "<>", "!=", "(", ",", "between", "and"):
			oid = last
		case before.is("like", "ilike", "||"):
			oid = pgtype.TextOID
		}
		if oids[k-1] == 0 {
			oids[k-1] = oid
		}
	}
	return oids
}

// inserted are the columns that an INSERT names.
func (st *statement) inserted() (list []string) {
	if st.tag != "INSERT" {
		return nil
	}
	open := false
	for _, t := range st.tokens {
		switch {
		case t.is("("):
			open = true
		case t.is(")") || t.is("values"):
			return list
		case open:
			if name, ok := t.name(); ok {
				list = append(list, name)
			}
		}
	}
	return list
}
