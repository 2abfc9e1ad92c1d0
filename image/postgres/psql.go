package postgres

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/kit"
)

// client is how psql and pg_isready find the server.
type client struct {
	env                        *kit.Env
	flags                      *pflag.FlagSet
	host, port, user, database string
	help                       bool
}

func newClient(env *kit.Env, name string) *client {
	c := &client{env: env, flags: pflag.NewFlagSet(name, pflag.ContinueOnError)}
	c.flags.SetOutput(io.Discard)
	user := cmp.Or(env.Getenv("PGUSER"), env.Getenv("POSTGRES_USER"), "postgres")
	c.flags.StringVarP(&c.host, "host", "h", cmp.Or(env.Getenv("PGHOST"), "127.0.0.1"), "the server's host")
	c.flags.StringVarP(&c.port, "port", "p", cmp.Or(env.Getenv("PGPORT"), "5432"), "the server's port")
	c.flags.StringVarP(&c.user, "username", "U", user, "the user")
	c.flags.StringVarP(&c.database, "dbname", "d", "", "the database, or postgres://user:password@host:port/database")
	c.flags.BoolVarP(&c.help, "help", "?", false, "show this help")
	return c
}

// connect opens a connection.
func (c *client) connect(ctx context.Context) (*pgconn.PgConn, error) {
	host, port, user, password := c.host, c.port, c.user, c.env.Getenv("PGPASSWORD")
	database := cmp.Or(c.database, c.env.Getenv("PGDATABASE"), user)
	if strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://") {
		u, err := url.Parse(database)
		if err != nil {
			return nil, err
		}
		host, port, database = cmp.Or(u.Hostname(), host), cmp.Or(u.Port(), port), strings.TrimPrefix(u.Path, "/")
		if u.User != nil {
			user = u.User.Username()
			password, _ = u.User.Password()
		}
		database = cmp.Or(database, user)
	}
	config, err := pgconn.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	// What the process around has in its environment is nothing to a container.
	config.Host, config.User, config.Password, config.Database = host, user, password, database
	if _, err := fmt.Sscan(port, &config.Port); err != nil {
		return nil, fmt.Errorf("invalid port number: %q", port)
	}
	config.TLSConfig, config.Fallbacks = nil, nil
	config.RuntimeParams = map[string]string{"application_name": "psql"}
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return c.env.Net.DialContext(ctx, network, addr)
	}
	config.LookupFunc = c.env.Net.LookupHost
	return pgconn.ConnectConfig(ctx, config)
}

// IsReady is pg_isready.
func IsReady(ctx context.Context, env *kit.Env) error {
	c := newClient(env, "pg_isready")
	timeout := c.flags.IntP("timeout", "t", 3, "seconds to wait")
	quiet := c.flags.BoolP("quiet", "q", false, "say nothing")
	if err := c.flags.Parse(env.Args[1:]); err != nil {
		fmt.Fprintf(env.Stderr, "pg_isready: error: %v\n", err)
		return kit.Exit(3)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(*timeout, 1))*time.Second)
	defer cancel()
	said, code := "accepting connections", 0
	conn, err := c.connect(ctx)
	refused, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		_ = conn.Close(ctx)
	case answered && (refused.Code == "57P03" || refused.Code == codeTooMany):
		said, code = "rejecting connections", 1
	case !answered:
		said, code = "no response", 2
	}
	if !*quiet {
		fmt.Fprintf(env.Stdout, "%s:%s - %s\n", c.host, c.port, said)
	}
	return kit.Exit(code)
}

// psql is the client that people run in the container.
type psql struct {
	*client
	conn      *pgconn.PgConn
	tuples    bool
	unaligned bool
	separator string
	stop      bool // at the first error
	failed    bool
}

// PSQL is psql.
func PSQL(ctx context.Context, env *kit.Env) error {
	p := &psql{client: newClient(env, "psql")}
	commands := p.flags.StringArrayP("command", "c", nil, "run a command and end")
	file := p.flags.StringP("file", "f", "", "run a file and end")
	list := p.flags.BoolP("list", "l", false, "list the databases and end")
	p.flags.BoolVarP(&p.tuples, "tuples-only", "t", false, "print rows only")
	p.flags.BoolVarP(&p.unaligned, "no-align", "A", false, "do not align columns")
	p.flags.StringVarP(&p.separator, "field-separator", "F", "|", "what stands between columns that are not aligned")
	sets := p.flags.StringArrayP("set", "v", nil, "ON_ERROR_STOP=1")
	p.flags.BoolP("no-psqlrc", "X", false, "ignored")
	p.flags.BoolP("quiet", "q", false, "ignored")
	p.flags.BoolP("no-password", "w", false, "ignored")
	version := p.flags.BoolP("version", "V", false, "show the version")
	if err := p.flags.Parse(env.Args[1:]); err != nil {
		fmt.Fprintf(env.Stderr, "psql: error: %v\n", err)
		return kit.Exit(1)
	}
	if p.help || *version {
		fmt.Fprintf(env.Stdout, "psql (PostgreSQL) %s\n", Version)
		if p.help {
			fmt.Fprintf(env.Stdout, "\nUsage:\n  psql [OPTION]... [DBNAME [USERNAME]]\n\n%s", p.flags.FlagUsages())
		}
		return nil
	}
	if p.flags.NArg() > 0 && p.database == "" {
		p.database = p.flags.Arg(0)
	}
	if p.flags.NArg() > 1 {
		p.user = p.flags.Arg(1)
	}
	for _, s := range *sets {
		p.stop = p.stop || strings.EqualFold(s, "ON_ERROR_STOP=1") || strings.EqualFold(s, "ON_ERROR_STOP=on")
	}
	var err error
	if p.conn, err = p.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		why := err.Error()
		if e, ok := errors.AsType[*pgconn.PgError](err); ok {
			why = e.Severity + ":  " + e.Message
		}
		fmt.Fprintf(env.Stderr, "psql: error: connection to server at %q, port %s failed: %s\n", p.host, p.port, why)
		return kit.Exit(2)
	}
	defer p.conn.Close(context.WithoutCancel(ctx))
	switch {
	case *list:
		*commands = []string{`\l`}
	case *file != "":
		data, err := env.ReadFile(*file)
		if err != nil {
			fmt.Fprintf(env.Stderr, "psql: error: %v\n", err)
			return kit.Exit(1)
		}
		return p.script(ctx, strings.NewReader(string(data)))
	case len(*commands) == 0:
		return p.script(ctx, env.Stdin)
	}
	for _, c := range *commands {
		p.run(ctx, c)
		if p.failed && p.stop {
			return kit.Exit(3)
		}
	}
	if p.failed {
		return kit.Exit(1)
	}
	return ctx.Err()
}

// script runs what it reads: statements up to their semicolons, and lines with a backslash.
func (p *psql) script(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	var pending strings.Builder
	prompt := func() {
		if p.env.Terminal == nil {
			return
		}
		mark := "=# "
		if pending.Len() > 0 {
			mark = "-# "
		}
		fmt.Fprint(p.env.Stdout, cmp.Or(p.database, p.user)+mark)
	}
	for prompt(); lines.Scan(); prompt() {
		line := strings.TrimSpace(lines.Text())
		if pending.Len() == 0 && (line == `\q` || line == "exit" || line == "quit") {
			break
		}
		if pending.Len() == 0 && strings.HasPrefix(line, `\`) {
			p.run(ctx, line)
			continue
		}
		if pending.Len()+len(line) > maxSQL {
			fmt.Fprintln(p.env.Stderr, "psql: error: a statement is too long")
			return kit.Exit(1)
		}
		pending.WriteString(lines.Text() + "\n")
		if strings.HasSuffix(line, ";") {
			p.run(ctx, pending.String())
			pending.Reset()
		}
		if p.failed && p.stop {
			return kit.Exit(3)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if strings.TrimSpace(pending.String()) != "" {
		p.run(ctx, pending.String())
	}
	if p.failed && p.stop {
		return kit.Exit(3)
	}
	return lines.Err()
}

const tablesQuery = `SELECT table_schema AS "Schema", table_name AS "Name", ` +
	`CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS "Type" FROM information_schema.tables`

var plainName = regexp.MustCompile(`^(?:([A-Za-z0-9_]+)\.)?([A-Za-z0-9_*]+)$`)

// meta is the query that stands for a command with a backslash.
func meta(line string) (query string, err error) {
	fields := strings.Fields(strings.TrimSuffix(line, ";"))
	argument := ""
	if len(fields) > 1 {
		argument = fields[1]
	}
	where := func(schema, name string) (string, error) {
		if argument == "" {
			return "", nil
		}
		m := plainName.FindStringSubmatch(argument)
		if m == nil {
			return "", fmt.Errorf("%q is not a name", argument)
		}
		var list []string
		if m[1] != "" {
			list = append(list, schema+" = '"+m[1]+"'")
		}
		if m[2] != "*" {
			list = append(list, name+" = '"+strings.ReplaceAll(m[2], "*", "")+"'")
		}
		if len(list) == 0 {
			return "", nil
		}
		return " WHERE " + strings.Join(list, " AND "), nil
	}
	switch strings.TrimSuffix(fields[0], "+") {
	case `\l`:
		return `SELECT datname AS "Name", 'UTF8' AS "Encoding", pg_size_pretty(size) AS "Size" ` +
			`FROM pg_database ORDER BY 1`, nil
	case `\dn`:
		return `SELECT nspname AS "Name", nspowner AS "Owner" FROM pg_namespace ORDER BY 1`, nil
	case `\du`, `\dg`:
		return `SELECT rolname AS "Role name", rolsuper AS "Superuser" FROM pg_roles ORDER BY 1`, nil
	case `\dt`:
		w, err := where("table_schema", "table_name")
		return tablesQuery + w + " ORDER BY 1, 2", err
	case `\d`:
		if argument == "" {
			return tablesQuery + " ORDER BY 1, 2", nil
		}
		w, err := where("table_schema", "table_name")
		return `SELECT column_name AS "Column", data_type AS "Type", ` +
			`CASE is_nullable WHEN 'NO' THEN 'not null' ELSE '' END AS "Nullable", coalesce(column_default, '') ` +
			`AS "Default" FROM information_schema.columns` + w + " ORDER BY table_schema, ordinal_position", err
	case `\conninfo`:
		return `SELECT current_database() AS "Database", current_user AS "User"`, nil
	}
	return "", fmt.Errorf("invalid command %s", fields[0])
}

// run sends a query and prints what comes.
func (p *psql) run(ctx context.Context, query string) {
	if line := strings.TrimSpace(query); strings.HasPrefix(line, `\`) {
		q, err := meta(line)
		if err != nil {
			fmt.Fprintln(p.env.Stderr, err)
			p.failed = true
			return
		}
		query = q
	}
	results := p.conn.Exec(ctx, query)
	for results.NextResult() {
		r := results.ResultReader()
		var head []string
		for _, f := range r.FieldDescriptions() {
			head = append(head, f.Name)
		}
		var rows [][]string
		for r.NextRow() {
			var row []string
			for _, v := range r.Values() {
				row = append(row, string(v))
			}
			rows = append(rows, row)
		}
		tag, err := r.Close()
		switch {
		case err != nil:
		case head != nil:
			p.print(head, rows)
		case !p.tuples:
			fmt.Fprintln(p.env.Stdout, tag.String())
		}
	}
	if err := results.Close(); err != nil {
		p.failed = true
		if e, ok := errors.AsType[*pgconn.PgError](err); ok {
			fmt.Fprintf(p.env.Stderr, "%s:  %s\n", e.Severity, e.Message)
			if e.Hint != "" {
				fmt.Fprintf(p.env.Stderr, "HINT:  %s\n", e.Hint)
			}
			return
		}
		fmt.Fprintf(p.env.Stderr, "psql: error: %v\n", err)
	}
}

// print writes a table as psql does.
func (p *psql) print(head []string, rows [][]string) {
	out := p.env.Stdout
	if p.unaligned {
		if !p.tuples {
			fmt.Fprintln(out, strings.Join(head, p.separator))
		}
		for _, r := range rows {
			fmt.Fprintln(out, strings.Join(r, p.separator))
		}
	} else {
		width := make([]int, len(head))
		for _, r := range append([][]string{head}, rows...) {
			for i, v := range r {
				width[i] = max(width[i], len([]rune(v)))
			}
		}
		line := func(r []string, gap, between string) {
			var b strings.Builder
			for i, v := range r {
				if i > 0 {
					b.WriteString(between)
				}
				b.WriteString(gap + v + strings.Repeat(cmp.Or(gap, " "), width[i]-len([]rune(v))) + gap)
			}
			fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
		}
		if !p.tuples {
			var b, titles []string
			for i, w := range width {
				titles = append(titles, strings.Repeat(" ", (w-len([]rune(head[i])))/2)+head[i])
				b = append(b, strings.Repeat("-", w+2))
			}
			line(titles, " ", "|")
			fmt.Fprintln(out, strings.Join(b, "+"))
		}
		for _, r := range rows {
			line(r, " ", "|")
		}
	}
	if !p.tuples {
		if len(rows) == 1 {
			fmt.Fprintln(out, "(1 row)")
		} else {
			fmt.Fprintf(out, "(%d rows)\n", len(rows))
		}
		if !p.unaligned {
			fmt.Fprintln(out)
		}
	}
}
