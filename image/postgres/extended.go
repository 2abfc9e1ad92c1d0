package postgres

import (
	"context"
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
