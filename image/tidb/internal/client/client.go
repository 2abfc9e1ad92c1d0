// Package client is mysql, the command-line client, as far as people use it to look around: statements by -e, from
// standard input, or typed in.
package client

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	maxInput  = 1 << 20
	maxColumn = 100
)

// options are the flags there are.
type options struct {
	host, port, user, password, database, execute string
	table, noNames, vertical                      bool
}

// parse reads the flags. Passwords may stand behind -p without a space, which no library of flags reads.
func parse(env *kit.Env, port string) (o options, err error) {
	f := pflag.NewFlagSet("mysql", pflag.ContinueOnError)
	f.SetOutput(env.Stderr)
	f.StringVarP(&o.host, "host", "h", "127.0.0.1", "the server")
	f.StringVarP(&o.port, "port", "P", port, "its port")
	f.StringVarP(&o.user, "user", "u", "root", "the user")
	f.StringVarP(&o.password, "password", "p", "", "the password")
	f.Lookup("password").NoOptDefVal = "\x00"
	f.StringVarP(&o.database, "database", "D", "", "the database")
	f.StringVarP(&o.execute, "execute", "e", "", "the statements to run")
	f.BoolVarP(&o.table, "table", "t", false, "draw tables")
	f.BoolVarP(&o.noNames, "skip-column-names", "N", false, "leave the names of columns out")
	f.BoolVarP(&o.vertical, "vertical", "E", false, "a line for each column")
	f.BoolP("batch", "B", false, "columns with tabs between them")
	f.Bool("comments", false, "keep comments")
	args := slices.Clone(env.Args[1:])
	for i, a := range args {
		if password, ok := strings.CutPrefix(a, "-p"); ok && password != "" {
			args[i] = "--password=" + password
		}
	}
	if err := f.Parse(args); err != nil {
		fmt.Fprintf(env.Stderr, "mysql: %v\n", err)
		return o, kit.Exit(1)
	}
	if o.password == "\x00" {
		o.password = env.Getenv("MYSQL_PWD")
	}
	if f.NArg() > 0 {
		o.database = f.Arg(0)
	}
	return o, nil
}

// Main is the program, with the port that it takes without -P.
func Main(port int) kit.Program {
	return func(ctx context.Context, env *kit.Env) error { return run(ctx, env, strconv.Itoa(port)) }
}

func run(ctx context.Context, env *kit.Env, port string) error {
	o, err := parse(env, port)
	if err != nil {
		return err
	}
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = o.user, o.password, "tcp", net.JoinHostPort(o.host, o.port), o.database
	c.DialFunc, c.Timeout, c.Logger = env.Net.DialContext, 5*time.Second, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return report(env, err)
	}
	defer conn.Close()
	s := &shell{env, o, conn}
	if o.execute != "" {
		for _, q := range statements(o.execute) {
			if err := s.run(ctx, q); err != nil {
				return report(env, err)
			}
		}
		return nil
	}
	return s.read(ctx)
}

// report says what is wrong, in the client's words.
func report(env *kit.Env, err error) error {
	var e *mysql.MySQLError
	var op *net.OpError
	switch {
	case errors.As(err, &e):
		fmt.Fprintf(env.Stderr, "ERROR %d (%s): %s\n", e.Number, e.SQLState[:], e.Message)
	case errors.As(err, &op):
		fmt.Fprintf(env.Stderr, "ERROR 2003 (HY000): Can't connect to MySQL server (%v)\n", op.Err)
	default:
		fmt.Fprintf(env.Stderr, "ERROR 2013 (HY000): Lost connection to MySQL server: %v\n", err)
	}
	return kit.Exit(1)
}

// shell runs statements over one connection.
type shell struct {
	env  *kit.Env
	o    options
	conn *sql.Conn
}

// read runs what standard input says.
func (s *shell) read(ctx context.Context) error {
	lines := bufio.NewScanner(s.env.Stdin)
	lines.Buffer(nil, maxInput)
	typed := s.env.Terminal != nil
	if typed {
		s.o.table = true
		fmt.Fprintln(s.env.Stdout, "Welcome to the MySQL monitor.  Commands end with ;")
	}
	var pending strings.Builder
	prompt := func() {
		if typed && pending.Len() == 0 {
			fmt.Fprint(s.env.Stdout, "mysql> ")
		} else if typed {
			fmt.Fprint(s.env.Stdout, "    -> ")
		}
	}
	for prompt(); lines.Scan(); prompt() {
		line := strings.TrimSpace(lines.Text())
		if word := strings.TrimSuffix(line, ";"); pending.Len() == 0 && (word == "exit" || word == "quit" || word == `\q`) {
			return nil
		}
		if pending.Len()+len(line) > maxInput {
			return fmt.Errorf("a statement may have at most %d bytes", maxInput)
		}
		pending.WriteString(line + "\n")
		if !strings.HasSuffix(line, ";") && !strings.HasSuffix(line, `\G`) {
			continue
		}
		if err := s.all(ctx, pending.String(), typed); err != nil {
			return err
		}
		pending.Reset()
	}
	if pending.Len() > 0 {
		return s.all(ctx, pending.String(), typed)
	}
	return lines.Err()
}

func (s *shell) all(ctx context.Context, text string, typed bool) error {
	for _, q := range statements(text) {
		if err := s.run(ctx, q); err != nil {
			if err := report(s.env, err); !typed {
				return err
			}
			return nil
		}
	}
	return nil
}

// statements splits a text at its semicolons.
func statements(text string) (list []string) {
	from, quote := 0, byte(0)
	add := func(to int) {
		if q := strings.TrimSpace(text[from:to]); q != "" {
			list = append(list, q)
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == ';':
			add(i)
			from = i + 1
		}
	}
	add(len(text))
	return list
}

// run runs one statement and prints what it shows.
func (s *shell) run(ctx context.Context, query string) error {
	vertical := s.o.vertical
	if q, ok := strings.CutSuffix(query, `\G`); ok {
		query, vertical = q, true
	}
	rows, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || len(names) == 0 {
		return err
	}
	var table [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := make([]string, len(names))
		for i, v := range values {
			row[i] = "NULL"
			if v.Valid {
				row[i] = v.String
			}
		}
		table = append(table, row)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	switch {
	case vertical:
		upright(s.env.Stdout, names, table)
	case s.o.table:
		drawn(s.env.Stdout, names, table)
	default:
		if len(table) > 0 && !s.o.noNames {
			fmt.Fprintln(s.env.Stdout, strings.Join(names, "\t"))
		}
		for _, row := range table {
			for i, v := range row {
				row[i] = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(v)
			}
			fmt.Fprintln(s.env.Stdout, strings.Join(row, "\t"))
		}
	}
	return nil
}

// upright prints a line for each column.
func upright(w io.Writer, names []string, table [][]string) {
	width := 0
	for _, n := range names {
		width = max(width, len(n))
	}
	for i, row := range table {
		fmt.Fprintf(w, "*************************** %d. row ***************************\n", i+1)
		for j, v := range row {
			fmt.Fprintf(w, "%*s: %s\n", width, names[j], v)
		}
	}
}

// drawn prints a table with lines around it.
func drawn(w io.Writer, names []string, table [][]string) {
	if len(table) == 0 {
		fmt.Fprintln(w, "Empty set")
		return
	}
	widths := make([]int, len(names))
	for _, row := range append([][]string{names}, table...) {
		for i, v := range row {
			widths[i] = min(max(widths[i], len([]rune(v))), maxColumn)
		}
	}
	line := "+"
	for _, n := range widths {
		line += strings.Repeat("-", n+2) + "+"
	}
	print := func(row []string) {
		text := "|"
		for i, v := range row {
			text += fmt.Sprintf(" %-*s |", widths[i], v)
		}
		fmt.Fprintln(w, text)
	}
	fmt.Fprintln(w, line)
	print(names)
	fmt.Fprintln(w, line)
	for _, row := range table {
		print(row)
	}
	fmt.Fprintln(w, line)
	fmt.Fprintf(w, "%d rows in set\n", len(table))
}
