package postgres

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5/pgproto3"
)

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
