package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// ownColumns are the columns of what the session answers itself.
func ownColumns(st *statement) []column {
	switch st.verb {
	case "show":
		return []column{{st.tokens[len(st.tokens)-1].text, pgtype.TextOID}}
	case "sleep":
		return []column{{"pg_sleep", pgtype.TextOID}}
	}
	return nil
}

// own does what the engine has no part in.
func (n *session) own(ctx context.Context, st *statement) (*result, string, error) {
	p := &parser{in: st.tokens, i: len(strings.Fields(st.verb))}
	tag, err := "", error(nil)
	switch st.verb {
	case "begin", "start transaction":
		tag = "BEGIN"
		if st.verb != "begin" {
			tag = "START TRANSACTION"
		}
		if n.tx == 'I' { // Otherwise it is only a warning.
			n.tx = 'T'
		}
	case "commit", "end":
		tag = "COMMIT"
		if n.tx == 'E' {
			tag = "ROLLBACK"
		}
		err = n.finish(ctx, true)
	case "rollback", "abort":
		p.accept("work")
		p.accept("transaction")
		if p.accept("to") {
			return n.savepoint(ctx, p, "ROLLBACK TO ", "ROLLBACK")
		}
		tag, err = "ROLLBACK", n.finish(ctx, false)
	case "savepoint":
		return n.savepoint(ctx, p, "SAVEPOINT ", "SAVEPOINT")
	case "release":
		return n.savepoint(ctx, p, "RELEASE ", "RELEASE")
	case "set", "reset":
		tag, err = strings.ToUpper(st.verb), n.set(p)
	case "discard":
		tag = "DISCARD ALL"
		clear(n.statements)
		clear(n.portals)
	case "deallocate":
		tag = "DEALLOCATE"
		p.accept("prepare")
		if p.accept("all") {
			clear(n.statements)
		} else if name, e := p.name(); e != nil {
			err = e
		} else {
			delete(n.statements, name)
		}
	case "show":
		return n.show(st)
	case "sleep":
		return n.sleep(ctx, st)
	default:
		return n.define(ctx, st, p)
	}
	return &result{}, tag, err
}

// savepoint does what concerns a part of a transaction.
func (n *session) savepoint(ctx context.Context, p *parser, verb, tag string) (*result, string, error) {
	if n.tx == 'I' {
		return nil, "", failf(codeNone, "%s can only be used in transaction blocks", tag)
	}
	p.accept("savepoint")
	name, err := p.name()
	if err != nil {
		return nil, "", err
	}
	err = n.within(ctx, true, func(ctx context.Context) error {
		_, err := n.engine.conn.ExecContext(ctx, verb+quote(name))
		return err
	})
	if err == nil && tag == "ROLLBACK" {
		n.tx = 'T'
	}
	return &result{}, tag, err
}

// set takes settings of the session. Those that would change results are refused.
func (n *session) set(p *parser) error {
	p.accept("session")
	p.accept("local")
	name, err := p.name()
	if err != nil {
		return err
	}
	var rest []string
	for _, t := range p.in[p.i:] {
		rest = append(rest, t.text)
	}
	switch name {
	case "application_name":
		if len(rest) > 1 {
			n.watch.Lock()
			n.app = rest[len(rest)-1]
			n.watch.Unlock()
		}
	case "client_encoding", "datestyle", "timezone", "time", "extra_float_digits", "standard_conforming_strings",
		"client_min_messages", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
		"transaction", "characteristics", "default_transaction_read_only", "intervalstyle", "bytea_output", "all":
	case "search_path":
		if !slices.Contains(rest, "public") {
			return unsupported("a search_path without public")
		}
	default:
		return failf(codeUnknownParameter, "unrecognized configuration parameter %q", name)
	}
	return nil
}

// shown are settings that people ask for.
func (n *session) shown() map[string]string {
	return map[string]string{
		"server_version": Version, "server_version_num": "170006", "port": n.settings.port, "timezone": "UTC",
		"max_connections": strconv.Itoa(n.settings.maxConnections), "server_encoding": "UTF8",
		"client_encoding": "UTF8",
		"search_path":     `"$user", public`, "transaction_isolation": "read committed", "datestyle": "ISO, MDY",
		"transaction isolation level": "read committed", "default_transaction_isolation": "read committed",
		"standard_conforming_strings": "on", "password_encryption": "scram-sha-256", "listen_addresses": "*",
		"statement_timeout": maxTime.String(), "lock_timeout": maxWait.String(),
		"idle_in_transaction_session_timeout": idleTimeout.String(), "data_directory": "/var/lib/postgresql/data",
	}
}

func (n *session) show(st *statement) (*result, string, error) {
	var words []string
	for _, t := range st.tokens[1:] {
		words = append(words, t.text)
	}
	name := strings.Join(words, " ")
	all := n.shown()
	value, ok := all[name]
	if !ok {
		return nil, "", failf(codeUnknownParameter, "unrecognized configuration parameter %q", name)
	}
	return &result{columns: ownColumns(st), rows: [][]any{{value}}}, "SHOW", nil
}

// maxSleep is how long pg_sleep sleeps.
const maxSleep = 10 * time.Minute

// sleep keeps nobody else waiting.
func (n *session) sleep(ctx context.Context, st *statement) (*result, string, error) {
	seconds, err := strconv.ParseFloat(st.tokens[3].text, 64)
	if err != nil {
		return nil, "", failf(codeBadText, "invalid input syntax for type double precision: %q", st.tokens[3].text)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	n.become("active", "", stop)
	t := time.NewTimer(time.Duration(min(seconds, maxSleep.Seconds()) * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
		return &result{columns: ownColumns(st), rows: [][]any{{""}}}, "SELECT 1", nil
	case <-ctx.Done():
		return nil, "", explain(ctx, ctx.Err())
	}
}

// define changes schemas, roles and rights, which is the superuser's.
func (n *session) define(ctx context.Context, st *statement, p *parser) (*result, string, error) {
	if r, ok := n.roles.get(n.user); !ok || !r.super {
		return nil, "", failf(codeDenied, "permission denied to %s", strings.ToUpper(st.verb))
	}
	tag := strings.ToUpper(st.verb)
	var err error
	switch st.verb {
	case "create schema", "drop schema":
		err = n.schema(ctx, p, st.verb == "create schema")
	case "create user", "create role", "alter user", "alter role":
		tag = strings.Replace(tag, "USER", "ROLE", 1)
		err = n.role(p, strings.HasPrefix(st.verb, "create"), strings.HasSuffix(st.verb, "user"))
	case "drop user", "drop role":
		tag = "DROP ROLE"
		quiet := p.accept("if", "exists")
		var name string
		if name, err = p.name(); err == nil {
			if err = n.roles.drop(name); quiet {
				err = nil
			}
		}
	case "grant", "revoke":
		var rights []right
		var to []string
		if rights, to, err = p.rightsOf(st.verb == "grant", n.database); err != nil {
			break
		}
		for _, name := range to {
			if err = n.roles.grant(name, rights, st.verb == "grant"); err != nil {
				break
			}
		}
	}
	return &result{}, tag, err
}

func (n *session) role(p *parser, create, login bool) error {
	name, err := p.name()
	if err != nil {
		return err
	}
	super, login, password, err := p.roleOptions(login)
	if err != nil {
		return err
	}
	return n.roles.set(name, create, super, login, password)
}

func (n *session) schema(ctx context.Context, p *parser, create bool) error {
	quiet := p.accept("if", "not", "exists") || p.accept("if", "exists")
	name, err := p.name()
	if err != nil {
		return err
	}
	if p.accept("authorization") {
		if _, err := p.name(); err != nil {
			return err
		}
	}
	cascade := p.accept("cascade")
	p.accept("restrict")
	if err := p.end(); err != nil {
		return err
	}
	exists := name == "public" || slices.Contains(n.engine.names(), name)
	switch {
	case create && exists && quiet, !create && !exists && quiet:
		return nil
	case create && exists:
		return failf(codeDuplicateSchema, "schema %q already exists", name)
	case !create && !exists:
		return failf(codeNoSchema, "schema %q does not exist", name)
	case !create && name == "public":
		return unsupported("DROP SCHEMA public")
	}
	return n.within(ctx, false, func(ctx context.Context) error {
		if create {
			return n.engine.createSchema(ctx, name)
		}
		var tables int
		err := n.engine.conn.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(name)+".sqlite_schema").Scan(&tables)
		if err != nil {
			return err
		}
		if tables > 0 && !cascade {
			f := failf("2BP01", "cannot drop schema %s because other objects depend on it", name)
			f.hint = "Use DROP ... CASCADE to drop the dependent objects too."
			return f
		}
		if err := n.engine.dropSchema(ctx, name); err != nil {
			return err
		}
		return n.engine.state(ctx)
	})
}
