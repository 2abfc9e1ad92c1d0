package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// catalog is a table that tells of the server: its columns with their types, and its rows as of now.
type catalog struct {
	columns string
	rows    func(ctx context.Context, n *session) ([][]any, error)
}

var catalogs = map[string]catalog{
	"pg_stat_activity": {
		"datid INT, datname TEXT, pid INT, usename TEXT, application_name TEXT, client_addr TEXT, client_port INT, " +
			"backend_start TIMESTAMPTZ, query_start TIMESTAMPTZ, state_change TIMESTAMPTZ, wait_event_type TEXT, " +
			"wait_event TEXT, state TEXT, query TEXT, backend_type TEXT",
		(func(context.Context, *session) ([][]any, error))(activity),
	},
	"pg_stat_database": {
		"datid INT, datname TEXT, numbackends INT, xact_commit BIGINT, xact_rollback BIGINT, tup_returned BIGINT, " +
			"tup_inserted BIGINT, deadlocks BIGINT, stats_reset TIMESTAMPTZ",
		databaseStats,
	},
	"pg_database": {"oid INT, datname TEXT, datdba INT, encoding INT, datallowconn BOOLEAN, size BIGINT", databases},
	"pg_tables": {
		"schemaname TEXT, tablename TEXT, tableowner TEXT",
		func(ctx context.Context, n *session) ([][]any, error) {
			return tables(ctx, n, func(schema, name, _ string) []any { return []any{schema, name, n.settings.user} })
		},
	},
	"information_schema_tables": {
		"table_catalog TEXT, table_schema TEXT, table_name TEXT, table_type TEXT",
		func(ctx context.Context, n *session) ([][]any, error) {
			return tables(ctx, n, func(schema, name, kind string) []any {
				said := "BASE TABLE"
				if kind == "view" {
					said = "VIEW"
				}
				return []any{n.database, schema, name, said}
			})
		},
	},
	"information_schema_columns": {
		"table_catalog TEXT, table_schema TEXT, table_name TEXT, column_name TEXT, ordinal_position INT, " +
			"column_default TEXT, is_nullable TEXT, data_type TEXT, is_key BOOLEAN",
		columnsOf,
	},
	"information_schema_schemata": {"catalog_name TEXT, schema_name TEXT, schema_owner TEXT", schemata},
	"pg_namespace": {"nspname TEXT, nspowner TEXT", func(ctx context.Context, n *session) ([][]any, error) {
		rows, err := schemata(ctx, n)
		for i := range rows {
			rows[i] = rows[i][1:]
		}
		return rows, err
	}},
	"pg_roles": {"rolname TEXT, rolsuper BOOLEAN, rolcanlogin BOOLEAN", roleRows},
	"pg_user":  {"usename TEXT, usesuper BOOLEAN, usecanlogin BOOLEAN", roleRows},
	"pg_settings": {"name TEXT, setting TEXT", func(_ context.Context, n *session) (rows [][]any, _ error) {
		all := n.shown()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			rows = append(rows, []any{name, all[name]})
		}
		return rows, nil
	}},
}

// fillCatalogs makes the tables that a statement asks for.
func (n *session) fillCatalogs(ctx context.Context, names []string) error {
	for _, name := range names {
		c, ok := catalogs[name]
		if !ok {
			return unsupported("the table %s of the system", name)
		}
		rows, err := c.rows(ctx, n)
		if err != nil {
			return err
		}
		table := "temp." + quote(name)
		for _, q := range []string{
			"DROP TABLE IF EXISTS " + table, "CREATE TABLE " + table + " ( " + c.columns + " )",
		} {
			if _, err := n.engine.conn.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		for _, row := range rows {
			q := "INSERT INTO " + table + " VALUES ( ?" + strings.Repeat(", ?", len(row)-1) + " )"
			if _, err := n.engine.conn.ExecContext(ctx, q, row...); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstDatabase is the OID of the first database.
const firstDatabase = 16384

func activity(_ context.Context, n *session) (rows [][]any, _ error) {
	stamp := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.UTC().Format(timeFormat)
	}
	for _, one := range n.list() {
		one.watch.Lock()
		host, port := "", 0
		if a := one.conn.RemoteAddr().String(); a != "" {
			i := strings.LastIndexByte(a, ':')
			host = strings.Trim(a[:max(i, 0)], "[]")
			_, _ = fmt.Sscan(a[i+1:], &port) // It is one of the network's own.
		}
		var waitType, wait any
		if one.state != "active" {
			waitType, wait = "Client", "ClientRead"
		}
		rows = append(rows, []any{
			firstDatabase, one.database, one.pid, one.user, one.app, host, port, stamp(one.since), stamp(one.began),
			stamp(one.began), waitType, wait, one.state, one.query, "client backend",
		})
		one.watch.Unlock()
	}
	return rows, nil
}

func databaseStats(_ context.Context, n *session) (rows [][]any, _ error) {
	for i, name := range slices.Sorted(maps.Keys(n.engines)) {
		e, open := n.engines[name], 0
		for _, one := range n.list() {
			if one.database == name {
				open++
			}
		}
		rows = append(rows, []any{
			firstDatabase + i, name, open, e.commits.Load(), e.rollbacks.Load(), e.returned.Load(), e.written.Load(), 0,
			n.started.UTC().Format(timeFormat),
		})
	}
	return rows, nil
}

func databases(_ context.Context, n *session) (rows [][]any, _ error) {
	for i, name := range slices.Sorted(maps.Keys(n.engines)) {
		rows = append(rows, []any{firstDatabase + i, name, 10, 6, true, n.engines[name].size()})
	}
	return rows, nil
}

func schemata(_ context.Context, n *session) (rows [][]any, _ error) {
	for _, name := range append([]string{"public"}, n.engine.names()...) {
		rows = append(rows, []any{n.database, name, n.settings.user})
	}
	return rows, nil
}

func roleRows(_ context.Context, n *session) (rows [][]any, _ error) {
	for _, r := range n.roles.list() {
		rows = append(rows, []any{r.name, r.super, r.login})
	}
	return rows, nil
}

// tables calls f for all tables and views of the database.
func tables(ctx context.Context, n *session, f func(schema, name, kind string) []any) (rows [][]any, err error) {
	for _, schema := range append([]string{"public"}, n.engine.names()...) {
		got, err := n.engine.conn.QueryContext(ctx, "SELECT name, type FROM "+quote(inside(schema))+
			".sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY name")
		if err != nil {
			return nil, err
		}
		for got.Next() {
			var name, kind string
			if err := got.Scan(&name, &kind); err != nil {
				got.Close()
				return nil, err
			}
			rows = append(rows, f(schema, name, kind))
		}
		got.Close()
		if err := got.Err(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func columnsOf(ctx context.Context, n *session) (rows [][]any, err error) {
	all, err := tables(ctx, n, func(schema, name, _ string) []any { return []any{schema, name} })
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		schema, name := t[0].(string), t[1].(string)
		columns, err := n.engine.describe(ctx, schema, name)
		if err != nil {
			return nil, err
		}
		for i, c := range columns {
			var def any
			if c.def.Valid {
				def = c.def.String
			}
			null := "YES"
			if c.notNull || c.key {
				null = "NO"
			}
			rows = append(rows, []any{n.database, schema, name, c.name, i + 1, def, null, saidOf(c.declared), c.key})
		}
	}
	return rows, nil
}
