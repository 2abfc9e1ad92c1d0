package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// initSQL is as the Astronomy Shop's, in short.
const initSQL = `
-- A user for the services.
CREATE USER otelu WITH PASSWORD 'otelp';
CREATE SCHEMA catalog;
CREATE SCHEMA IF NOT EXISTS accounting AUTHORIZATION root;
CREATE TABLE catalog.products (
	id TEXT PRIMARY KEY, name VARCHAR(100) NOT NULL, description TEXT, price_units BIGINT DEFAULT 0,
	price_nanos INTEGER, added TIMESTAMPTZ DEFAULT now(), stocked BOOLEAN DEFAULT TRUE, weight NUMERIC(10,2)
);
CREATE TABLE accounting."order" (order_id TEXT PRIMARY KEY);
CREATE TABLE accounting.orderitem (
	product_id TEXT NOT NULL, quantity INT NOT NULL, order_id TEXT NOT NULL REFERENCES "order"(order_id),
	PRIMARY KEY (order_id, product_id)
);
CREATE INDEX products_name ON catalog.products USING btree (name);
INSERT INTO catalog.products (id, name, description, price_units, price_nanos, weight) VALUES
	('OLJCESPC7Z', 'National Park Foundation Explorascope', 'It''s a telescope', 101, 960000000, 1.5),
	('66VCHSJNUP', 'Starsense Explorer', 'A smart telescope', 349, 950000000, 2.25);
GRANT USAGE ON SCHEMA catalog, accounting TO otelu;
GRANT SELECT ON ALL TABLES IN SCHEMA catalog TO otelu;
GRANT ALL PRIVILEGES ON ALL TABLES IN SCHEMA accounting TO otelu;
`

type lab struct {
	t      testing.TB
	server *kittest.Machine
	client *kittest.Machine
	run    *kittest.Run
}

func start(t testing.TB, script string, args ...string) *lab {
	t.Helper()
	return startWith(t, script, func(*kit.Env) {}, args...)
}

// startWith starts a server in an environment that something was done to.
func startWith(t testing.TB, script string, prepare func(*kit.Env), args ...string) *lab {
	t.Helper()
	w := kittest.New(t)
	l := &lab{t: t, server: w.Machine("postgresql", "10.244.0.2"), client: w.Machine("client", "10.244.0.3")}
	l.server.Install(Image(nil))
	if script != "" {
		l.server.Write(initDir+"/init.sql", script)
	}
	env := l.server.Env(append([]string{"docker-entrypoint.sh", "postgres"}, args...)...)
	env.Vars["POSTGRES_USER"], env.Vars["POSTGRES_PASSWORD"], env.Vars["POSTGRES_DB"] = "root", "otel", "otel"
	prepare(env)
	l.run = l.server.Run(Entrypoint, env)
	l.run.Await("ready to accept connections")
	return l
}

func (l *lab) dial(user, password, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%s@postgresql:5432/%s?sslmode=disable", user, password, database))
	if err != nil {
		l.t.Fatal(err)
	}
	network := l.client.Env().Net
	config.DialFunc, config.LookupFunc = network.DialContext, network.LookupHost
	return pgx.ConnectConfig(l.t.Context(), config)
}

func (l *lab) connect() *pgx.Conn {
	l.t.Helper()
	c, err := l.dial("root", "otel", "otel")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// code is the SQLSTATE of an error.
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestPGX(t *testing.T) {
	l := start(t, initSQL)
	c, ctx := l.connect(), t.Context()
	var name, description string
	var units int64
	var nanos int32
	var added time.Time
	var stocked bool
	var weight float64
	err := c.QueryRow(ctx, "SELECT p.name, description, price_units, price_nanos, added, stocked, weight FROM catalog.products p "+
		"WHERE p.id = $1", "OLJCESPC7Z").Scan(&name, &description, &units, &nanos, &added, &stocked, &weight)
	if err != nil || name != "National Park Foundation Explorascope" || description != "It's a telescope" || units != 101 ||
		nanos != 960000000 || !stocked || time.Since(added) > time.Hour || weight != 1.5 {
		t.Errorf("%s, %s, %d, %d, %v, %v, %v, %v", name, description, units, nanos, added, stocked, weight, err)
	}
	rows, err := c.Query(ctx, "SELECT id FROM catalog.products WHERE name ILIKE $1 OR description ILIKE $1 ORDER BY id LIMIT $2",
		"%EXPLORER%", 10)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff([]string{"66VCHSJNUP"}, ids); diff != "" || err != nil {
		t.Errorf("%s, %v", diff, err)
	}
	var count int
	var sum int64
	if err := c.QueryRow(ctx, "SELECT count(*), sum(price_units) FROM catalog.products").Scan(&count, &sum); err != nil || count != 2 || sum != 450 {
		t.Errorf("%d, %d, %v", count, sum, err)
	}
	if err := c.QueryRow(ctx, "SELECT count(*) FROM catalog.products WHERE id = $1", "none").Scan(&count); err != nil || count != 0 {
		t.Errorf("%d, %v", count, err)
	}

	// A transaction that is rolled back, and one that is not.
	for i, commit := range []bool{false, true} {
		tx, err := c.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("o", i)
		if _, err := tx.Exec(ctx, `INSERT INTO accounting."order" (order_id) VALUES ($1)`, id); err != nil {
			t.Fatal(err)
		}
		tag, err := tx.Exec(ctx, "INSERT INTO accounting.orderitem (product_id, quantity, order_id) VALUES ($1, $2, $3), ($4, $5, $6)",
			"p", 3, id, "q", 4, id)
		if err != nil || tag.RowsAffected() != 2 {
			t.Fatalf("%v, %v", tag, err)
		}
		if commit {
			err = tx.Commit(ctx)
		} else {
			err = tx.Rollback(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var quantity int
	if err := c.QueryRow(ctx, "SELECT sum(quantity) FROM accounting.orderitem").Scan(&quantity); err != nil || quantity != 7 {
		t.Errorf("%d, %v", quantity, err)
	}

	// Numbers that the table gives, and RETURNING.
	if _, err := c.Exec(ctx, "CREATE TABLE events (id BIGSERIAL PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP, data JSONB)"); err != nil {
		t.Fatal(err)
	}
	var id int64
	for want := range int64(3) {
		err := c.QueryRow(ctx, "INSERT INTO events (data) VALUES ($1) RETURNING id, at", `{"a": 1}`).Scan(&id, &added)
		if err != nil || id != want+1 || time.Since(added) > time.Hour {
			t.Errorf("%d, %v, %v", id, added, err)
		}
	}
	when := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	if _, err := c.Exec(ctx, "UPDATE public.events SET at = $1 WHERE id = $2", when, 1); err != nil {
		t.Error(err)
	}
	if err := c.QueryRow(ctx, "SELECT at FROM events WHERE at = $1::timestamptz", when).Scan(&added); err != nil || !added.Equal(when) {
		t.Errorf("%v, %v", added, err)
	}

	// All columns have their names, and no others.
	type event struct {
		ID   int64
		At   time.Time
		Data string
	}
	for _, q := range []string{"SELECT * FROM events WHERE id = 2", "UPDATE events SET data = '{}' WHERE id = 3 RETURNING *"} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
			rows, err := c.Query(ctx, q, mode)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[event]); err != nil || got.ID < 2 || got.At.IsZero() {
				t.Errorf("%s: %+v, %v", q, got, err)
			}
		}
	}
	rows, err = c.Query(ctx, "SELECT 1, 1 + 1, count(*), count(*) AS n, max(id), lower('A') FROM events")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	rows.Close()
	if diff := cmp.Diff([]string{"?column?", "?column?", "count", "n", "max", "lower"}, names); diff != "" {
		t.Error(diff)
	}

	// The same with the simple protocol.
	simple := pgx.QueryExecModeSimpleProtocol
	if err := c.QueryRow(ctx, "SELECT id FROM events WHERE id = $1 AND data::text LIKE '%a%'", simple, 2).Scan(&id); err != nil || id != 2 {
		t.Errorf("%d, %v", id, err)
	}
}

func TestErrors(t *testing.T) {
	l := start(t, initSQL)
	c, ctx := l.connect(), t.Context()
	for _, tt := range []struct{ sql, want string }{
		{"SELECT * FROM nowhere", codeNoTable},
		{"SELECT * FROM catalog.nowhere", codeNoTable},
		{"SELECT colour FROM catalog.products", codeNoColumn},
		{"SELEC 1", codeSyntax},
		{"SELECT 1 FROM", codeSyntax},
		{"SELECT (1", codeSyntax},
		{"SELECT 'open", codeSyntax},
		{"INSERT INTO catalog.products (id, name) VALUES ('OLJCESPC7Z', 'again')", codeUnique},
		{"INSERT INTO catalog.products (id) VALUES ('x')", codeNotNull},
		{"INSERT INTO accounting.orderitem VALUES ('a', 1, 'nowhere')", codeForeignKey},
		{"CREATE TABLE catalog.products (id INT)", codeDuplicateTable},
		{"CREATE SCHEMA catalog", codeDuplicateSchema},
		{"DROP SCHEMA nowhere", codeNoSchema},
		{"DROP SCHEMA catalog", "2BP01"},
		{"CREATE USER otelu", codeDuplicateObject},
		{"SELECT load_extension('x')", codeNoFunction},
		{"SELECT randomblob(100000000)", codeNoFunction},
		{"SELECT zeroblob(100000000)", codeNoFunction},
		{"PRAGMA page_size", codeSyntax},
		{"ATTACH DATABASE '/etc/passwd' AS x", codeSyntax},
		{"COPY catalog.products TO STDOUT", codeUnsupported},
		{"EXPLAIN SELECT 1", codeUnsupported},
		{"CREATE DATABASE x", codeUnsupported},
		{"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c", codeUnsupported},
		{"SELECT ARRAY[1,2]", codeUnsupported},
		{"SELECT 'a' ~ 'b'", codeUnsupported},
		{"CREATE TABLE t (id INT PRIMARY KEY, n SERIAL)", codeUnsupported},
		{"VACUUM", codeUnsupported},
		{"SET nothing = 1", codeUnknownParameter},
		{"SELECT * FROM pg_catalog.pg_class", codeUnsupported},
		{"SAVEPOINT a", codeNone},
		{"SELECT length(replace(replace(replace(replace('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','a','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'),'b','cccccccccccccccccccccccccccccccc'),'c','dddddddddddddddd'),'d','eeeeeeeeeeeee'))", codeTooLarge},
	} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeDescribeExec} {
			if _, err := c.Exec(ctx, tt.sql, mode); code(err) != tt.want {
				t.Errorf("%s: %v (%s), want %s", tt.sql, err, code(err), tt.want)
			}
		}
	}
	if _, err := c.Exec(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Exec(ctx, "SELECT * FROM nowhere")
	if _, err := c.Exec(ctx, "SELECT 1"); code(err) != codeAborted {
		t.Errorf("in a failed transaction: %v", err)
	}
	if tag, err := c.Exec(ctx, "COMMIT"); err != nil || tag.String() != "ROLLBACK" {
		t.Errorf("%v, %v", tag, err)
	}
	log := l.run.Stderr.String()
	for _, want := range []string{`ERROR:  relation "nowhere" does not exist`, "STATEMENT:  SELECT * FROM nowhere", "LOG:  starting PostgreSQL 17.6"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log:\n%.2000s", want, log)
		}
	}
}

func TestLogin(t *testing.T) {
	l := start(t, initSQL, "-c", "max_connections=2")
	for _, tt := range []struct{ user, password, database, want string }{
		{"root", "otel", "otel", ""},
		{"otelu", "otelp", "otel", ""},
		{"root", "wrong", "otel", codeInvalidPassword},
		{"nobody", "x", "otel", codeInvalidPassword},
		{"root", "otel", "nowhere", codeNoDatabase},
	} {
		c, err := l.dial(tt.user, tt.password, tt.database)
		if (err == nil) != (tt.want == "") || err != nil && code(err) != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
		if err == nil {
			c.Close(t.Context())
		}
	}
	a, b := l.connect(), l.connect()
	if _, err := l.dial("root", "otel", "otel"); code(err) != codeTooMany {
		t.Errorf("a third one: %v", err)
	}
	a.Close(t.Context())
	b.Close(t.Context())
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := l.dial("root", "otel", "otel")
		if err == nil {
			c.Close(t.Context())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestRights(t *testing.T) {
	l := start(t, initSQL)
	root := l.connect()
	c, err := l.dial("otelu", "otelp", "otel")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	do := func(c *pgx.Conn, sql, want string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql); err == nil && want != "" || err != nil && code(err) != want {
			t.Errorf("%s: %v, want %q", sql, err, want)
		}
	}
	do(c, "SELECT * FROM catalog.products", "")
	do(c, "DELETE FROM catalog.products", codeDenied)
	do(c, "INSERT INTO accounting.\"order\" VALUES ('1')", "")
	do(c, "CREATE TABLE catalog.x (a INT)", codeDenied)
	do(c, "CREATE SCHEMA x", codeDenied)
	do(root, "REVOKE SELECT ON ALL TABLES IN SCHEMA catalog FROM otelu", "")
	do(c, "SELECT * FROM catalog.products", codeDenied)
	do(c, "SELECT 1 FROM (SELECT 1) a, catalog.products", codeDenied)
	do(root, "GRANT SELECT ON catalog.products TO otelu", "")
	do(c, "SELECT * FROM catalog.products", "")
	do(root, "REVOKE USAGE ON SCHEMA catalog FROM otelu", "")
	do(c, "SELECT * FROM catalog.products", codeDenied)
	do(root, "ALTER USER otelu PASSWORD 'new'", "")
	if _, err := l.dial("otelu", "otelp", "otel"); code(err) != codeInvalidPassword {
		t.Errorf("the old password: %v", err)
	}
}

// TestTransactions has those who read wait for nobody who has only read, and those who write one after another.
func TestTransactions(t *testing.T) {
	l := start(t, "CREATE TABLE a (n INT);")
	x, y, ctx := l.connect(), l.connect(), t.Context()
	tx, err := x.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT * FROM a"); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Exec(ctx, "INSERT INTO a VALUES (1)"); err != nil { // The other has only read.
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "INSERT INTO a VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := y.Exec(ctx, "UPDATE a SET n = n + 10")
		done <- err
	}()
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var sum int
	if err := x.QueryRow(ctx, "SELECT sum(n) FROM a").Scan(&sum); err != nil || sum != 23 {
		t.Errorf("%d, %v", sum, err)
	}
	// One that goes with its transaction leaves nothing.
	tx, _ = x.Begin(ctx)
	if _, err := tx.Exec(ctx, "SAVEPOINT s"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "DELETE FROM a"); err != nil {
		t.Fatal(err)
	}
	x.Close(ctx)
	if err := y.QueryRow(ctx, "SELECT count(*) FROM a").Scan(&sum); err != nil || sum != 2 {
		t.Errorf("%d, %v", sum, err)
	}
}

func TestLimits(t *testing.T) {
	l := start(t, "CREATE TABLE a (s TEXT);")
	c, ctx := l.connect(), t.Context()
	big := strings.Repeat("x", 100<<10)
	n, err := 0, error(nil)
	for ; err == nil && n < 2000; n++ {
		_, err = c.Exec(ctx, "INSERT INTO a VALUES ($1)", big)
	}
	if code(err) != codeDiskFull || n > 400 {
		t.Errorf("%d rows of 100 KiB, %v", n, err)
	}
	if used := l.server.Env().Memory.Info().Used; used < 20<<20 || used > 40<<20 {
		t.Errorf("%d MiB are stated", used>>20)
	}
	if _, err := c.Exec(ctx, "SELECT * FROM a"); code(err) != codeTooLarge {
		t.Errorf("a large result: %v", err)
	}
	if _, err := c.Exec(ctx, "INSERT INTO a VALUES ($1)", strings.Repeat("x", maxValue+1)); code(err) != codeTooLarge {
		t.Errorf("a large value: %v", err)
	}
	if _, err := c.Exec(ctx, "SELECT count(*) FROM a a, a b, a c, a d WHERE a.s || b.s = c.s"); code(err) != codeCanceled && code(err) != codeTooLarge {
		t.Errorf("a long query: %v", err)
	}
	if _, err := c.Exec(ctx, "SELECT count(*) FROM a a, a b, a c, a d"); code(err) != codeCanceled {
		t.Errorf("an endless query: %v", err)
	}
	if _, err := c.Exec(ctx, "DELETE FROM a"); err != nil {
		t.Error(err)
	}
}

func TestOperate(t *testing.T) {
	l := start(t, initSQL)
	sleeper := l.connect()
	woken := make(chan error, 1)
	go func() {
		_, err := sleeper.Exec(context.Background(), "SELECT pg_sleep(300)", pgx.QueryExecModeSimpleProtocol)
		woken <- err
	}()
	run := func(args ...string) (string, int) {
		env, out := l.server.Env(args...), &kittest.Buffer{}
		env.Stdout, env.Stderr = out, out
		env.Vars["POSTGRES_USER"] = "root"
		p := PSQL
		if args[0] == "pg_isready" {
			p = IsReady
		}
		code := kit.Run(t.Context(), p, env)
		return out.String(), code
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		out, _ := run("psql", "-U", "root", "-d", "otel", "-tAc", "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(300)%' AND state = 'active' AND pid <> pg_backend_pid()")
		if out == "1\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody sleeps: %s", out)
		}
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pg_isready"}, 0, "127.0.0.1:5432 - accepting connections\n"},
		{[]string{"pg_isready", "-p", "1"}, 2, "no response"},
		{
			[]string{"psql", "-U", "root", "otel", "-c", "SELECT id, price_units FROM catalog.products ORDER BY id"},
			0,
			"     id     | price_units\n------------+-------------\n 66VCHSJNUP | 349\n OLJCESPC7Z | 101\n(2 rows)\n\n",
		},
		{[]string{"psql", "-d", "otel", "-tA", "-c", "SELECT count(*), current_user FROM catalog.products"}, 0, "2|root\n"},
		{[]string{"psql", "-d", "otel", "-c", `\dt`}, 0, " catalog    | products  | table"},
		{[]string{"psql", "-d", "otel", "-c", `\d catalog.products`}, 0, "price_units | bigint"},
		{[]string{"psql", "-d", "otel", "-c", `\dn`}, 0, " accounting | root"},
		{[]string{"psql", "-l"}, 2, `database "root" does not exist`},
		{[]string{"psql", "-d", "otel", "-l"}, 0, " postgres | UTF8"},
		{[]string{"psql", "-d", "otel", "-c", `\du`}, 0, " otelu"},
		{[]string{"psql", "-d", "otel", "-c", `\x`}, 1, `invalid command \x`},
		{[]string{"psql", "-d", "otel", "-c", "SELECT * FROM x"}, 1, "ERROR:  relation \"x\" does not exist\n"},
		{[]string{"psql", "-d", "otel", "-c", "SHOW max_connections"}, 0, " 100"},
		{[]string{"psql", "-d", "otel", "-tAc", "SELECT datname, numbackends > 0 FROM pg_stat_database WHERE datname = 'otel'"}, 0, "otel|1\n"},
		{[]string{"psql", "-d", "otel", "-tAc", "SELECT version()"}, 0, "PostgreSQL 17.6"},
		{[]string{"psql", "postgres://root:otel@postgresql:5432/otel", "-tAc", "SELECT 1"}, 0, "1\n"},
		{[]string{"psql", "-h", "postgresql", "-d", "otel", "-tAc", "SELECT 1"}, 2, "password authentication failed"},
		{[]string{"psql", "-d", "otel", "-tAc", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(300)%' AND pid <> pg_backend_pid()"}, 0, "1\n"},
	} {
		out, code := run(tt.args...)
		if code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("%q: exit %d\n%s", tt.args, code, out)
		}
	}
	if err := <-woken; err == nil {
		t.Error("the sleeper goes on")
	}
	env := l.server.Env("psql", "-d", "otel", "-U", "root")
	env.Stdin = strings.NewReader("CREATE TABLE lines (a INT);\nINSERT INTO lines\n VALUES (1), (2);\n\\dt lines\nSELECT sum(a) FROM lines;\n")
	if code := kit.Run(t.Context(), PSQL, env); code != 0 || !strings.Contains(fmt.Sprint(env.Stdout), "INSERT 0 2\n") || !strings.Contains(fmt.Sprint(env.Stdout), " 3\n") {
		t.Errorf("%s\n%s", env.Stdout, env.Stderr)
	}
	l.run.Signal(syscall.SIGTERM)
	if code := l.run.Wait(); code != 0 || !strings.Contains(l.run.Stderr.String(), "database system is shut down") {
		t.Errorf("exit %d", code)
	}
}

func TestStart(t *testing.T) {
	for name, tt := range map[string]struct {
		vars   map[string]string
		args   []string
		script string
		code   int
		want   string
	}{
		"no password":     {nil, nil, "", 1, "superuser password is not specified"},
		"an unknown name": {map[string]string{"POSTGRES_PASSWORD": "x"}, []string{"-c", "nothing=1"}, "", 1, "unrecognized configuration parameter"},
		"no number":       {map[string]string{"POSTGRES_PASSWORD": "x"}, []string{"-c", "max_connections=many"}, "", 1, "invalid value"},
		"a bad script":    {map[string]string{"POSTGRES_PASSWORD": "x"}, nil, "SELECT * FROM nowhere;", 3, `ERROR:  relation "nowhere" does not exist`},
	} {
		m := kittest.New(t).Machine("postgresql", "10.244.0.2")
		m.Install(Image(nil))
		m.Write(initDir+"/init.sql", tt.script)
		env := m.Env(append([]string{"docker-entrypoint.sh", "postgres"}, tt.args...)...)
		for k, v := range tt.vars {
			env.Vars[k] = v
		}
		out := &kittest.Buffer{}
		env.Stdout, env.Stderr = out, out
		if code := kit.Run(t.Context(), Entrypoint, env); code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: exit %d\n%s", name, code, out)
		}
	}
}

func TestBrokenProtocol(t *testing.T) {
	l := start(t, "")
	startup := func(params string) []byte {
		body := append(binary.BigEndian.AppendUint32(nil, 196608), params...)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
	}
	for name, data := range map[string][]byte{
		"another protocol": []byte("GET / HTTP/1.1\r\n\r\n"),
		"no size":          {0, 0, 0, 0},
		"a huge size":      {0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		"no user":          startup("\x00"),
		"no parameters":    startup(""),
		"no password":      append(startup("user\x00root\x00\x00"), 'p', 0xff, 0xff, 0xff, 0xff),
		"SSL for ever":     bytes.Repeat([]byte{0, 0, 0, 8, 4, 210, 22, 47}, 10),
	} {
		c, err := l.client.Env().Net.DialContext(t.Context(), "tcp", "postgresql:5432")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(data)
		if name == "no size" || name == "no parameters" || name == "no password" {
			if h, ok := c.(interface{ CloseWrite() error }); ok {
				_ = h.CloseWrite()
			} else {
				c.Close()
			}
		}
		_ = c.SetReadDeadline(time.Now().Add(40 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil {
			if n, ok := err.(net.Error); ok && n.Timeout() {
				t.Errorf("%s: the connection stays open", name)
			}
		}
		c.Close()
	}
	if _, err := l.connect().Exec(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
}

// FuzzTranslate has no text end the process, or reach the engine with more than the lexer knows.
func FuzzTranslate(f *testing.F) {
	for _, s := range []string{
		initSQL, "SELECT a::int, $1::text FROM b.c WHERE d ILIKE $2", "SELECT $$x$$, E'\\n', \"a\"\"b\" /* c /* d */ */ -- e",
		"UPDATE t SET a = now() WHERE b IN ($1, $2)", "TRUNCATE TABLE a.b CASCADE", "GRANT ALL ON x TO y", "CREATE ROLE a PASSWORD 'b'",
		"CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b TEXT DEFAULT lower('X'))", "SELECT f(", "::", "SELECT )", "$1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > maxSQL {
			return
		}
		statements, err := lex(query)
		if err != nil {
			return
		}
		for _, tokens := range statements {
			st, err := translate(tokens, facts{"u", "d", 1})
			if err != nil {
				continue
			}
			st.infer(map[string]uint32{"a": 25})
			returning(st, nil, nil)
			p := &parser{in: tokens, i: 1}
			_, _, _ = p.rightsOf(true, "d")
			p = &parser{in: tokens, i: 1}
			_, _, _, _ = p.roleOptions(true)
		}
	})
}
